@testable import PromisesTestSupport

/// Promises that handlers with `on:` return.
struct OnAdoptionTests {
    private let loop = EventLoop.current

    @Test(.inLoop) func onesThatSettleLater() throws {
        let (inner, resolver) = Promise<Int>.pending()
        let outer = Promise.value(1).then(on: ThreadPool.shared) { _ in inner }
        let failing = Promise<Int>(error: Flaw()).recover(on: ThreadPool.shared) { _ in inner }
        loop.schedule(after: .seconds(5)) { resolver.fulfill(7) }
        let hold = loop.hold()
        expectEqual(try hang(outer), 7)
        expectEqual(try hang(failing), 7)
        hold.cancel()
    }

    @Test(.inLoop) func onesOfThisLoop() throws {
        let late = after(.seconds(5)).map { 3 }
        let outer = Promise.value(1).then(on: nil) { _ in late }
        expect(outer.isPending)
        try loop.run()
        expectEqual(outer.settledValue, 3)
    }

    @Test(.inLoop) func oneThatIsRejectedLater() {
        let lines = logged {
            let (inner, resolver) = Promise<Int>.pending()
            let outer = Promise.value(1).then(on: nil) { _ in inner }
            resolver.reject(Flaw(2))
            expectEqual(outer.flaw, Flaw(2))
        }
        expectEqual(lines, [])
    }

    @Test(.inLoop) func oneThatIsAbandoned() {
        var outer: Promise<Int>?
        let lines = logged { outer = Promise.value(1).then(on: nil) { _ in Promise<Int> { _ in } } }
        expect(outer?.error as? PromiseError == .abandoned && lines.count == 1)
    }

    @Test(.inLoop) func theVeryPromiseThatWaits() {
        let (shelf, box) = (Shelf(), Shared<Promise<Int>?>(nil))
        let outer = Promise.value(1).then(on: shelf) { _ in box.value! }
        box.change { $0 = outer }
        shelf.run()
        expect(outer.error as? PromiseError == .returnedSelf)
        box.change { $0 = nil }
    }

    @Test(.inLoop) func anotherOperatorFollowsOne() throws {
        let shelf = Shelf()
        let outer = Promise.value(1).then { value in Promise.value(value).map(on: shelf) { $0 + 1 } }.map {
            $0 * 10
        }
        try loop.run()
        expect(outer.isPending)
        shelf.run()
        try loop.run()
        expectEqual(outer.settledValue, 20)
    }

    @Test(.inLoop) func guarantees() {
        let (inner, resolve) = Guarantee<Int>.pending()
        let outer: Guarantee<Int> = Guarantee.value(1).then(on: nil) { _ in inner }
        let recovered: Guarantee<Int> = Promise<Int>(error: Flaw()).recover(on: nil) { _ in inner }
        expect(outer.isPending && recovered.isPending)
        resolve(4)
        expect(outer.settledValue == 4 && recovered.settledValue == 4)
    }

    @Test(.inLoop) func combinatorsOfThem() {
        let pool = ThreadPool.shared
        let all = when(fulfilled: (1...20).map { number in Promise.value(number).map(on: pool) { $0 * 2 } })
        expect(all, gives: (1...20).map { $0 * 2 })
        let shelf = Shelf()
        let loser = Promise.value(1).map(on: shelf) { $0 }
        expect(race(loser, Promise.value(2).map(on: pool) { $0 }), gives: 2)
        loser.cancel()
    }

    /// A promise that its own operators have not settled yet, and that a `then` has linked to another.
    @Test(.inLoop) func asWaitersOfALinkedPromise() throws {
        let (start, resolver) = Promise<Int>.pending()
        let inner = start.map { $0 }
        let outer = Promise.value(0).then { _ in inner }
        try loop.run()
        let seen = inner.map(on: nil) { $0 + 1 }
        let cancelled = inner.map(on: nil) { $0 + 2 }
        cancelled.cancel()
        expect(cancelled.isRejected && outer.isPending, "the other side still wants it")
        resolver.fulfill(1)
        try loop.run()
        expect(seen.settledValue == 2 && outer.settledValue == 1)
    }

    @Test(.inLoop) func whatAGuaranteeThatNeverSettlesHasIsReleased() throws {
        let tally = Tally()
        let lines = logged {
            let source = Guarantee<Int> { _ in }
            let before = { [token = tally.token()] in source.map(on: nil) { token.with($0) } }()
            let dropped = { [token = tally.token()] in
                Guarantee.value(1).map(on: Shredder()) { token.with($0) }
            }()
            expect(before.isPending && dropped.isPending && tally.alive == 0)
            let later = before.map(on: nil) { [token = tally.token()] in token.with($0) }
            expect(later.isPending && tally.alive == 0)
        }
        expectEqual(lines.count, 2)
    }
}
