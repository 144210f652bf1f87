@testable import PromisesTestSupport

struct CompactMapTests {
    @Test(.inLoop) func nilRejectsAndNamesValueAndType() {
        let error = PromiseError.compactMap(value: "twelve", type: "Int")
        expect(Promise.value("twelve").compactMap { Int($0) }, failsWith: error)
        expect(Guarantee.value("twelve").compactMap { Int($0) }, failsWith: error)
        expectEqual("\(error)", "compactMap found no Int in twelve")
    }

    @Test(.inLoop) func onlyTheOuterNilCounts() {
        let nested = Promise.value(1).compactMap { _ -> Int?? in .some(nil) }
        expect(nested, gives: nil)
        let error = PromiseError.compactMap(value: "1", type: "Optional<Int>")
        expect(Promise.value(1).compactMap { _ -> Int?? in .none }, failsWith: error)
    }

    @Test(.inLoop) func aThrowAndARejectionStayWhatTheyAre() {
        var calls = 0
        let thrown = Promise.value("1").compactMap { _ throws -> Int? in throw Flaw(1) }
        expect(thrown, failsWith: Flaw(1))
        let passed = Promise<String>(error: Flaw(2)).compactMap { text -> Int? in
            calls += 1
            return Int(text)
        }
        expect(passed, failsWith: Flaw(2))
        expectEqual(calls, 0)
    }

    @Test(.inLoop) func aLargeValueIsCut() {
        let text = String(repeating: "ä", count: 201)
        let shown = String(repeating: "ä", count: 200) + "…"
        expect(
            Promise.value(text).compactMap { Int($0) },
            failsWith: PromiseError.compactMap(value: shown, type: "Int"))
    }
}
