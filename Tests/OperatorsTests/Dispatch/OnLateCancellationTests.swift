import Promises
import Reactor
import TestSupport
import Testing

@testable import PromisesTestSupport

/// Promises of operators with `on:` that are cancelled while their closure runs.
@Suite struct OnLateCancellationTests {
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

    @Test func aRejectedPromiseThatComesTooLateIsNotReported() {
        inLoop { _ in
            let (shelf, box) = (Shelf(), Shared<Promise<Int>?>(nil))
            let lines = logged {
                let outer = Promise.value(1).then(on: shelf) { _ in
                    box.value?.cancel()
                    return Promise<Int>(error: Flaw())
                }
                box.change { $0 = outer }
                shelf.run()
                expectEqual(outer.error?.isCancelled, true)
                box.change { $0 = nil }
            }
            expectEqual(lines, [])
        }
    }
}
