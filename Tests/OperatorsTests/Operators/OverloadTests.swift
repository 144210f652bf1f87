@testable import PromisesTestSupport

private func twice(_ number: Int) -> Int { number * 2 }
private func half(_ number: Int) throws -> Int {
    guard number % 2 == 0 else { throw Flaw(number) }
    return number / 2
}
private func later(_ number: Int) -> Promise<Int> { after(.seconds(1)).map { number }.asPromise() }
private func surely(_ number: Int) -> Guarantee<Int> { .value(number) }
private func zero(_ error: any Error) -> Guarantee<Int> { .value(0) }
private func one(_ error: any Error) throws -> Promise<Int> { .value(1) }
private func swallow(_ error: any Error) {}

/// Every operator takes the line of its call as its last parameters; its body can still be written in every way.
struct OverloadTests {
    @Test(.inLoop) func functions() throws {
        expect(Promise.value(4).map(twice), gives: 8)
        expect(Promise.value(4).map(half), gives: 2)
        expect(Promise.value(3).map(half), failsWith: Flaw(3))
        expect(Guarantee.value(3).map(half), failsWith: Flaw(3))
        expect(Guarantee.value(3).then { Promise.value(try half($0)) }, failsWith: Flaw(3))
        expect(Promise.value(3).then(later), gives: 3)
        expect(Promise.value(3).then(surely), gives: 3)
        expect(Promise<Int>(error: Flaw()).recover(zero), gives: 0)
        expect(Promise<Int>(error: Flaw()).recover(one), gives: 1)
        expect(Promise<Int>(error: PromiseError.cancelled).recover(policy: .allErrors, one), gives: 1)
        var seen: [Int] = []
        let note: (Int) -> Void = { seen.append($0) }
        expect(Promise.value(3).get(note), gives: 3)
        try hang(Promise.value(4).done(note))
        hang(Guarantee.value(5).done(note))
        expect(Guarantee.value(6).get(note), gives: 6)
        expectEqual(seen, [3, 4, 5, 6])
        Promise<Int>(error: Flaw()).catch(swallow).finally {}
    }

    @Test(.inLoop) func keyPaths() throws {
        expect(Promise.value("four").map(\.count), gives: 4)
        expect(Guarantee.value("four").map(\.count), gives: 4)
        let counts = when(fulfilled: ["a", "bc"].map { Promise.value($0).map(\.count) })
        expect(counts, gives: [1, 2])
    }

    @Test(.inLoop) func aGuaranteeStaysOne() {
        let mapped: Guarantee<Int> = Guarantee.value(4).map(twice)
        let chained: Guarantee<Int> = Guarantee.value(4).then(surely).get { _ in }.tap { _ in }
        let empty: Guarantee<Void> = mapped.asVoid()
        let throwing: Promise<Int> = Guarantee.value(4).map(half)
        let recovered: Guarantee<Int> = Promise<Int>(error: Flaw()).recover { _ in .value(1) }
        let swallowed: Guarantee<Void> = Promise<Void>(error: Flaw()).recover(swallow)
        expectEqual(hang(mapped) + hang(chained) + hang(recovered), 13)
        hang(empty)
        hang(swallowed)
        expect(throwing, gives: 2)
    }
}
