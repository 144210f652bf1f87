@testable import PromisesTestSupport

struct WhenTests {
    private let loop = EventLoop.current

    @Test(.inLoop) func keepsTheOrderOfTheList() throws {
        let pairs = (0..<5).map { _ in Promise<Int>.pending() }
        let all = when(fulfilled: pairs.map(\.promise))
        for index in [3, 0, 4, 1] { pairs[index].resolver.fulfill(index) }
        expect(all.isPending)
        pairs[2].resolver.fulfill(2)
        expect(all, gives: [0, 1, 2, 3, 4])
    }

    @Test(.inLoop) func anEmptyListIsFulfilled() {
        expectEqual(when(fulfilled: [Promise<Int>]()).settledValue, [])
        let ended: Promise<Void> = when(fulfilled: [Promise<Void>]())
        expect(ended.isFulfilled)
        expectEqual(when(fulfilled: [Guarantee<String>]()).settledValue, [])
    }

    @Test(.inLoop) func voidList() throws {
        let pairs = (0..<3).map { _ in Promise<Void>.pending() }
        let all: Promise<Void> = when(fulfilled: pairs.map(\.promise))
        for pair in pairs {
            expect(all.isPending)
            pair.resolver.fulfill()
        }
        expect(all.isFulfilled)
    }

    @Test(.inLoop) func oneRejectionRejectsAtOnce() {
        let pairs = (0..<3).map { _ in Promise<Int>.pending() }
        let all = when(fulfilled: pairs.map(\.promise))
        pairs[1].resolver.reject(Flaw(1))
        expectEqual(all.flaw, Flaw(1))
        pairs[0].resolver.reject(Flaw(0))
        pairs[2].resolver.fulfill(2)
        expectEqual(all.flaw, Flaw(1))
    }

    @Test(.inLoop) func ofSeveralRejectedAlreadyTheFirstInTheListCounts() {
        let all = when(fulfilled: [Promise.value(0), Promise(error: Flaw(1)), Promise(error: Flaw(2))])
        expectEqual(all.flaw, Flaw(1))
    }

    @Test(.inLoop) func theOthersRunOnAndAreNotReported() throws {
        let lines = try loggedInLoop { loop throws in
            var ran = false
            let slow = after(.seconds(1)).map { () throws -> Int in
                ran = true
                throw Flaw(2)
            }
            expect(when(fulfilled: [slow, Promise(error: Flaw(1))]), failsWith: Flaw(1))
            try loop.run()
            expect(ran)
        }
        expectEqual(lines, [])
    }

    @Test(.inLoop) func aBigList() {
        let count = scaled(100_000)
        let pairs = (0..<count).map { _ in Promise<Int>.pending() }
        let all = when(fulfilled: pairs.map(\.promise))
        for index in (0..<count).reversed() { pairs[index].resolver.fulfill(index) }
        expectEqual(all.settledValue?.elementsEqual(0..<count), true)
    }

    @Test(.inLoop) func valuesOfManyWords() throws {
        let rows = (0..<4).map { [String](repeating: "row \($0) is longer than a small string", count: $0) }
        let all = when(fulfilled: rows.map { Promise.value($0) })
        expectEqual(all.settledValue, rows)
        let quadruples = when(fulfilled: (0..<3).map { Promise.value(($0, $0 * 2, $0 * 3, $0 * 4)) })
        let last = try #require(quadruples.settledValue).last
        expectEqual(last?.3, 8)
    }
}

struct WhenTypesTests {
    @Test func settledInAnyOrder() throws {
        let (first, firstResolver) = Promise<Int>.pending()
        let (second, secondResolver) = Promise<[UInt8]>.pending()
        let (third, resolveThird) = Guarantee<String?>.pending()
        let all = when(fulfilled: first, second, third)
        resolveThird(nil)
        firstResolver.fulfill(1)
        expect(all.isPending)
        secondResolver.fulfill([2, 3])
        let values = try #require(all.settledValue)
        expect(values.0 == 1 && values.1 == [2, 3] && values.2 == nil)
    }

    @Test func theFirstRejectionRejects() {
        let (first, firstResolver) = Promise<Int>.pending()
        let (second, secondResolver) = Promise<String>.pending()
        let both = when(fulfilled: first, second)
        secondResolver.reject(Flaw(2))
        firstResolver.reject(Flaw(1))
        expectEqual(both.flaw, Flaw(2))
        expectEqual(when(fulfilled: Promise<Int>(error: Flaw(3)), Promise<String>(error: Flaw(4))).flaw, Flaw(3))
    }

    @Test func nothing() {
        let none: Promise<Void> = when()
        expect(none.isFulfilled)
    }
}
