@testable import PromisesTestSupport

/// Handles of a loop, used on another thread.
struct HandlesElsewhereTests {
    @Test(.inRealTime, .ownThread) func aHoldIsReleasedFromATask() throws {
        let loop = EventLoop.current
        let hold = loop.hold()
        Task.detached { hold.cancel() }
        try loop.run()
        expect(!loop.isAlive)
        hold.cancel()
    }

    /// In release builds too.
    @Test(.ownThread) func aTimerThatIsCancelledOnAnotherThreadEndsTheProcess() async {
        await #expect(processExitsWith: .failure) {
            try EventLoop.withLoop { loop throws in
                nonisolated(unsafe) let timer = loop.schedule(after: .seconds(3600)) {}
                let worker = try EventLoop.spawn()
                worker.submit { timer.cancel() }
                worker.stop()
                worker.join()
            }
        }
    }

    @Test(.ownThread) func aHookThatIsCancelledOnAnotherThreadEndsTheProcess() async {
        await #expect(processExitsWith: .failure) {
            try EventLoop.withLoop { loop throws in
                nonisolated(unsafe) let hook = loop.beforeWaiting {}
                let worker = try EventLoop.spawn()
                worker.submit { hook.cancel() }
                worker.stop()
                worker.join()
            }
        }
    }
}
