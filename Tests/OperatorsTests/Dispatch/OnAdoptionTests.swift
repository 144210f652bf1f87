@testable import PromisesTestSupport

/// Promises that handlers with `on:` return.
struct OnAdoptionTests {
    private let loop = EventLoop.current

    @Test(.inLoop) func oneThatIsRejectedLater() {
        let lines = logged {
            let (inner, resolver) = Promise<Int>.pending()
            let outer = Promise.value(1).then(on: nil) { _ in inner }
            resolver.reject(Flaw(2))
            expectEqual(outer.flaw, Flaw(2))
        }
        expectEqual(lines, [])
    }

    @Test(.inLoop) func theVeryPromiseThatWaits() {
        let (shelf, box) = (Shelf(), Shared<Promise<Int>?>(nil))
        let outer = Promise.value(1).then(on: shelf) { _ in box.value! }
        box.change { $0 = outer }
        shelf.run()
        expect(outer.error as? PromiseError == .returnedSelf)
        box.change { $0 = nil }
    }

    @Test(.inLoop) func guarantees() {
        let (inner, resolve) = Guarantee<Int>.pending()
        let outer: Guarantee<Int> = Guarantee.value(1).then(on: nil) { _ in inner }
        let recovered: Guarantee<Int> = Promise<Int>(error: Flaw()).recover(on: nil) { _ in inner }
        expect(outer.isPending && recovered.isPending)
        resolve(4)
        expect(outer.settledValue == 4 && recovered.settledValue == 4)
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
