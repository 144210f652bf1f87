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
    @Test(.ownThread) func aTimerOrAHookThatIsCancelledOnAnotherThreadEndsTheProcess() async {
        await #expect(processExitsWith: .failure) {
            try callElsewhere { loop in
                let timer = loop.schedule(after: .seconds(3600)) {}
                return { timer.cancel() }
            }
        }
        await #expect(processExitsWith: .failure) {
            try callElsewhere { loop in
                let hook = loop.beforeWaiting {}
                return { hook.cancel() }
            }
        }
    }
}

/// Calls the closure that `make` returns for a loop of this thread, on another thread.
private func callElsewhere(_ make: (EventLoop) -> () -> Void) throws {
    try EventLoop.withLoop { loop throws in
        nonisolated(unsafe) let body = make(loop)
        TestThread.run { body() }
    }
}
