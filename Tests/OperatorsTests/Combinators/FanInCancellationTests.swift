@testable import PromisesTestSupport

/// A cancelled combinator releases everything at once.
struct FanInCancellationTests {
    @Test(.inLoop) func theValuesThatItHasGathered() throws {
        let loop = EventLoop.current
        let tally = Tally()
        let (promise, resolver) = Promise<Tally.Token>.pending()
        let all = when(fulfilled: [Promise.value(tally.token()), promise])
        let outcomes = when(resolved: [Promise.value(tally.token()), promise])
        all.cancel()
        outcomes.cancel()
        expect(all.isCancelled && tally.alive == 0)
        try loop.run()
        withExtendedLifetime((resolver, all, outcomes)) {}
    }

    @Test func eachOfARowThatIsGoneWithoutRecursion() {
        TestThread(stackSize: isSanitized ? 1 << 20 : 128 << 10) {
            inLoop { _ in
                let (promise, resolver) = Promise<Int>.pending()
                promise.pipe { _ in }
                var last = Promise<Int>(error: Flaw())
                for _ in 0..<scaled(100_000) {
                    last = race(fulfilled: [last, promise])
                    last.cancel()
                }
                expect(last.isCancelled && promise.isPending)
                withExtendedLifetime(resolver) {}
            }
        }.join()
    }

    /// Only its cancellation tells that a promise of a dispatcher ends at once. By then the result waits for its sources.
    @Test(.inLoop, arguments: 0..<3) func oneSourceEndsAtOnceAndAnotherGoesOn(combinator: Int) throws {
        let shelf = Shelf()
        let (goingOn, resolver) = Promise<Int>.pending()
        goingOn.pipe { _ in }
        let sources = [Promise.value(1).map(on: shelf) { $0 }, goingOn]
        let result =
            switch combinator {
            case 0: when(fulfilled: sources).asVoid()
            case 1: when(resolved: sources).asPromise().asVoid()
            default: when(fulfilled: sources.makeIterator(), concurrently: 2).asVoid()
            }
        result.cancel()
        try EventLoop.current.run()
        expect(result.isCancelled && goingOn.isPending)
        resolver.fulfill(2)
    }

    @Test(.inLoop, arguments: 0..<4) func manySources(combinator: Int) throws {
        let naps = (0..<scaled(25_000)).map { number in after(.seconds(1)).map { number }.asPromise() }
        let result =
            switch combinator {
            case 0: when(fulfilled: naps).asVoid()
            case 1: when(resolved: naps).asPromise().asVoid()
            case 2: race(naps).asVoid()
            default: race(fulfilled: naps).asVoid()
            }
        result.cancel()
        expectEqual(EventLoop.current.nextDeadline, nil)
        try EventLoop.current.run()
        expect(!EventLoop.current.isAlive)
        expect(result, failsWith: PromiseError.cancelled)
    }
}
