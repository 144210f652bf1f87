@testable import Promises
@testable import PromisesTestSupport

/// Cancelling twice has the effect of cancelling once, even while the first cancellation is still in progress.
struct CancelledTwiceTests {
    private let loop = EventLoop.current

    /// Below a handler that an earlier cancellation has reached, and that waits there for the end.
    @Test(.inLoop) func eachWaitsForACleanUpAbove() throws {
        var hasEnded = false
        let cleaned = endless().ensureThen { after(.seconds(1)).done { hasEnded = true } }
        cleaned.cancel()
        for _ in 0..<3 {
            let lower = cleaned.map { $0 }
            lower.cancel()
            expect(lower.isPending)
            lower.done { _ in }.catch(policy: .allErrors) { _ in expect(hasEnded) }
        }
        try loop.run()
        expect(cleaned.isCancelled)
    }

    /// A producer that cannot stop: a cancellation leaves its promise, and a later one does not wait for it.
    @Test(.inLoop) func workThatContinuesIsNotWaitedFor() {
        let core = PromiseCore(root: Int.self)
        let work = Promise<Int>(core)
        work.cancel()
        let lower = work.map { $0 }
        lower.cancel()
        expect(work.isPending && lower.isCancelled)
        core.fulfill(1)
        expectEqual(work.settledValue, 1)
    }

    @Test(.inLoop) func theCleanupCancelsItsOwnPromise() throws {
        var runs = 0
        var promise: Promise<Int>?
        let (source, resolver) = Promise<Int>.pending()
        promise = source.tap { _ in
            runs += 1
            promise?.cancel(with: Flaw(1))
        }
        promise?.cancel()
        promise?.cancel()
        try loop.run()
        expect(runs == 1 && promise?.error as? PromiseError == .cancelled)
        promise = nil
        withExtendedLifetime(resolver) {}
    }
}

/// A cleanup is notified when its source settles, even if its own promise has been cancelled by then.
struct CancelledOnItsWayTests {
    private let loop = EventLoop.current

    @Test(.inLoop) func tapReceivesTheOutcomeOfTheSource() throws {
        var seen: [String] = []
        let one = Promise.value(1).tap { seen.append("\($0)") }
        let two = Promise<Int>(error: Flaw(2)).tap { seen.append("\($0)") }
        one.cancel()
        two.cancel(with: Flaw(3))
        two.cancel()
        expect(one.isPending && two.isPending)
        try loop.run()
        expectEqual(seen, ["success(1)", "failure(PromisesTestSupport.Flaw(number: 2))"])
        expect(one.error as? PromiseError == .cancelled && two.flaw == Flaw(3))
    }

    @Test(.inLoop) func aPromiseThatHasAdoptedIt() throws {
        let (source, resolver) = Promise<Int>.pending()
        var seen: [String] = []
        let inner = source.tap { seen.append("\($0)") }
        let outer = Promise.value(0).then { _ in inner }
        try loop.turn(.poll)
        resolver.fulfill(1)
        outer.cancel(with: Flaw(1))
        outer.cancel()
        try loop.run()
        expect(seen == ["success(1)"] && outer.flaw == Flaw(1) && inner.isCancelled)
    }
}
