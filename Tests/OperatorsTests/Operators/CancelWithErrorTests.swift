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
