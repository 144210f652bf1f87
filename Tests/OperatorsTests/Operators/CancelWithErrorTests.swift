@testable import PromisesTestSupport

struct CancelWithErrorTests {
    private let loop = EventLoop.current

    @Test(.inLoop) func rejectsThePromiseWithTheErrorAndTheRestWithCancelled() throws {
        let source = after(.seconds(10)).asPromise().map { 1 }
        var upstream: (any Error)?
        let seen = source.tap { if case .failure(let error) = $0 { upstream = error } }
        let promise = seen.map { $0 + 1 }
        promise.cancel(with: Flaw(3))
        expect(promise.isPending)
        try loop.run()
        expectEqual(promise.flaw, Flaw(3))
        expect(upstream as? PromiseError == .cancelled)
        expect(source.error as? PromiseError == .cancelled)
        expectEqual(loop.now.nanoseconds, 0)
    }

    @Test(.inLoop) func isAnErrorLikeOthersForCatch() throws {
        var caught: Flaw?
        let promise = endless()
        promise.catch { caught = $0 as? Flaw }
        promise.cancel(with: Flaw(4))
        expectEqual(caught, nil)
        try loop.run()
        expectEqual(caught, Flaw(4))
    }

    @Test(.inLoop) func ofAPromiseWithAResolverCallsOnCancel() throws {
        var wasCancelled = false
        let (promise, resolver) = Promise<Int>.pending()
        resolver.onCancel { wasCancelled = true }
        promise.cancel(with: Flaw(5))
        try loop.run()
        expect(wasCancelled && promise.flaw == Flaw(5))
        resolver.fulfill(1)
        expectEqual(promise.flaw, Flaw(5))
    }

    @Test(.inLoop) func reachesAnEnsureWithTheError() throws {
        var seen: (any Error)?
        let promise = endless().tap { if case .failure(let error) = $0 { seen = error } }
        promise.cancel(with: Flaw(6))
        expect(promise.isPending)
        try loop.run()
        expect(seen as? Flaw == Flaw(6) && promise.flaw == Flaw(6))
    }

    @Test(.inLoop) func ofWhatAHandlerHasReturnedAndOthersWaitFor() throws {
        let shared = after(.seconds(1)).map { 8 }
        let one = Promise.value.then { shared }
        let two = Promise.value.then { shared }
        var first: Flaw?
        var second = 0
        one.done { _ in }.catch { first = $0 as? Flaw }
        two.done { second = $0 }.orFail()
        try loop.turn(.poll)
        one.cancel(with: Flaw(7))
        try loop.run()
        expect(first == Flaw(7) && second == 8)
    }

    @Test(.inLoop) func fromAnotherThreadKeepsTheError() throws {
        let promise = after(.seconds(10)).asPromise().map { 1 }
        TestThread.run { promise.cancel(with: Flaw(9)) }
        expect(promise.isPending)
        expect(promise, failsWith: Flaw(9))
        expectEqual(loop.now.nanoseconds, 0)
    }

    @Test(.inLoop) func isUnhandledLikeAnyErrorUnlessItMeansCancelled() throws {
        let lines = logged { inLoop { _ in endless().cancel(with: Flaw(12)) } }
        expectEqual(lines.filter { $0.contains("number: 12") }.count, 1)
        expectEqual(logged { inLoop { _ in endless().cancel(with: CancellationError()) } }, [])
    }

    @Test(.inLoop) func withoutArgumentsItIsAFunctionToHandOver() throws {
        let promise = endless()
        let stop: () -> Void = promise.cancel
        stop()
        expect(promise.error as? PromiseError == .cancelled)
    }
}
