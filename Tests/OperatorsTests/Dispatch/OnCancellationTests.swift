@testable import Promises
@testable import PromisesTestSupport

/// Cancelling work for a dispatcher: before it is dispatched, before it runs, and while it runs; see `RunningWorkTests`
/// for those that wait for it then.
struct OnCancellationTests {
    private let loop = EventLoop.current

    @Test(.inLoop) func beforeTheSourceHasSettled() throws {
        let (tally, shelf) = (Tally(), Shelf())
        let (source, resolver) = Promise<Int>.pending()
        var isStopped = false
        resolver.onCancel { isStopped = true }
        let mapped = {
            let token = tally.token()
            return source.map { $0 }.map(on: shelf) { token.with($0) }
        }()
        mapped.cancel()
        expect(source.error as? PromiseError == .cancelled)
        try loop.turn(.poll)
        expect(mapped.error as? PromiseError == .cancelled && tally.alive == 0)
        resolver.fulfill(1)
        try loop.run()
        expect(isStopped && shelf.count == 0)
    }

    @Test(.inLoop) func fromBelowUnlessThereIsAnotherWaiter() {
        let shelf = Shelf()
        let (source, resolver) = Promise<Int>.pending()
        let mapped = source.map(on: shelf) { $0 + 1 }
        let (one, other) = (mapped.map { $0 }, mapped.map(on: nil) { $0 })
        one.cancel()
        expect(mapped.isPending)
        other.cancel()
        expect(mapped.error as? PromiseError == .cancelled && source.error as? PromiseError == .cancelled)
        resolver.fulfill(1)
    }

    @Test(.inLoop) func beforeTheJobHasBegun() {
        let (tally, shelf, ran) = (Tally(), Shelf(), Shared(false))
        let mapped = {
            let token = tally.token()
            return Promise.value(1).map(on: shelf) { value in
                ran.change { $0 = true }
                return token.with(value)
            }
        }()
        expectEqual(shelf.count, 1)
        mapped.cancel()
        expect(mapped.error as? PromiseError == .cancelled && tally.alive == 0)
        shelf.run()
        expect(!ran.value)
    }

    /// It is cancelled; if it is rejected, that comes too late to be reported.
    @Test(.inLoop, arguments: [false, true])
    func whatARunningHandlerReturnsIsNotWantedAnyMore(isRejected: Bool) {
        let (shelf, box) = (Shelf(), Shared<Promise<Int>?>(nil))
        let (pending, resolver) = Promise<Int>.pending()
        let lines = logged {
            let outer = Promise.value(1).then(on: shelf) { _ in
                box.value?.cancel()
                return isRejected ? Promise(error: Flaw()) : pending
            }
            box.value = outer
            shelf.run()
            expect(outer.isCancelled && pending.isCancelled != isRejected)
            box.value = nil
        }
        expectEqual(lines, [])
        resolver.fulfill(1)
    }

    /// A shared promise continues for the others.
    @Test(.inLoop) func aRunningHandlerReturnsASharedPromise() throws {
        let (shelf, box) = (Shelf(), Shared<Promise<Int>?>(nil))
        let (shared, resolver) = Promise<Int>.pending()
        var seen = 0
        shared.done { seen = $0 }.cauterize()
        let outer = Promise.value(1).then(on: shelf) { _ in
            box.value?.cancel()
            return shared
        }
        box.value = outer
        shelf.run()
        expect(outer.isCancelled && shared.isPending)
        box.value = nil
        resolver.fulfill(2)
        try loop.run()
        expectEqual(seen, 2)
    }

    /// A `recover` of all errors receives the cancellation, and its result counts, until it is cancelled again.
    @Test(.inLoop, arguments: [false, true])
    func aRecoveryCounts(isCancelledAgain: Bool) throws {
        let shelf = Shelf()
        let (fallback, resolver) = Promise<Int>.pending()
        let recovered = endless().recover(on: shelf, policy: .allErrors) { error throws -> Promise<Int> in
            expect(error as? PromiseError == .cancelled)
            return fallback
        }
        recovered.cancel()
        shelf.run()
        expect(recovered.isPending && fallback.isPending)
        if isCancelledAgain { recovered.cancel() } else { resolver.fulfill(5) }
        try loop.run()
        expect(isCancelledAgain ? recovered.isCancelled && fallback.isCancelled : recovered.settledValue == 5)
    }

    /// An error that comes after the cancellation begins no recovery.
    @Test(.inLoop) func aLaterErrorOfAnUnstoppableSource() throws {
        let (shelf, ran) = (Shelf(), Shared(false))
        let core = PromiseCore(handedOut: Int.self)
        let recovered = Promise<Int>(core).recover(on: shelf) { _ throws -> Promise<Int> in
            ran.change { $0 = true }
            return .value(7)
        }
        recovered.cancel()
        core.reject(Flaw(1))
        shelf.run()
        try loop.run()
        expect(recovered.isCancelled && !ran.value)
    }

    @Test(.inLoop, arguments: [false, true])
    func whatAHandlerHasReturned(isShared: Bool) {
        let (inner, resolver) = Promise<Int>.pending()
        if isShared { inner.pipe { _ in } }
        let outer = Promise.value(1).then(on: Immediate()) { _ in inner }
        expect(outer.isPending)
        outer.cancel()
        expect(outer.error as? PromiseError == .cancelled && inner.isPending == isShared)
        resolver.fulfill(1)
        expect(outer.error as? PromiseError == .cancelled)
    }

    @Test(.inLoop) func cleanupRunsBeforeTheSourceHasSettled() throws {
        let (shelf, log) = (Shelf(), Shared<[String]>([]))
        let (source, resolver) = Promise<Int>.pending()
        let end = source.tap(on: shelf) { result in log.change { $0.append("tap \(result)") } }
            .ensure(on: shelf) { log.change { $0.append("ensure") } }
        end.cancel()
        end.cancel()
        expect(end.isPending, "the cleanup has not been")
        expect(source.error as? PromiseError == .cancelled)
        shelf.run()
        expect(end.isPending, "the second cleanup begins when the first has ended")
        shelf.run()
        expect(end.error as? PromiseError == .cancelled)
        expectEqual(log.value, ["tap failure(the work was cancelled)", "ensure"])
        resolver.fulfill(1)
        try loop.run()
        expectEqual(shelf.count, 0)
    }

    @Test(.inLoop) func cleanupRunsWhenItWasDispatchedAlready() {
        let (shelf, log) = (Shelf(), Shared<[String]>([]))
        let end = Promise.value(1).tap(on: shelf) { result in log.change { $0.append("\(result)") } }
        end.cancel(with: Flaw(4))
        end.cancel()
        expect(end.isPending)
        shelf.run()
        // It is notified of how the source settled, but the promise is cancelled.
        expect(end.flaw == Flaw(4) && log.value == ["success(1)"])
    }
}

/// Promises of operators with `on:` that are cancelled while their closure runs.
struct OnLateCancellationTests {
    /// Another thread cancels the promise, and the job returns before the handlers have received the cancellation.
    @Test(.ownThread) func theLoopStaysUntilTheHandlersKnow() throws {
        let pool = try ThreadPool(threads: 1)
        try EventLoop.withLoop { loop throws in
            let (begun, end, isSettling, seen) = (Gate(), Gate(), Gate(), Gate())
            let running = Promise.value(1).map(on: pool) { _ in
                begun.open()
                end.wait()
            }
            // Runs on the thread of the pool, as part of the settlement, before the handler below is called.
            running.pipe { _ in
                isSettling.open()
                seen.wait()
            }
            var isCancelled = false
            running.catch(policy: .allErrors) { isCancelled = $0.isCancelled }
            begun.wait()
            TestThread { running.cancel() }.join()
            expect(running.isPending)
            end.open()
            isSettling.wait()
            try loop.turn(.poll)
            expect(loop.isAlive)
            seen.open()
            try loop.run()
            expect(isCancelled)
        }
        pool.shutDown()
    }

    /// Below a `recover` of all errors, as any other operator.
    @Test(.inLoop, arguments: [true, false]) func aValueInPlaceOfTheCancellation(isInline: Bool) throws {
        let shelf = Shelf()
        let mapped = endless().recover(policy: .allErrors) { _ throws -> Promise<Int> in .value(5) }
            .map(on: isInline ? nil : shelf) { $0 + 1 }
        mapped.cancel()
        try EventLoop.current.run(until: { !mapped.isPending || shelf.count > 0 })
        shelf.run()
        expectEqual(mapped.settledValue, 6)
    }
}
