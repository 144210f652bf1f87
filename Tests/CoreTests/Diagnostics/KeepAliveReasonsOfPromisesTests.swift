@testable import PromisesTestSupport

/// The keep-alive report of a loop that promises wait for.
struct KeepAliveReasonsOfPromisesTests {
    @Test(.inRealTime, .ownThread) func aTaskIsWorkOfOtherThreads() throws {
        let loop = EventLoop.current
        let gate = Gate()
        let task = Promise { () async in gate.wait() }
        expectEqual(loop.keepAliveReport.description, "1 piece of work on other threads")
        gate.open()
        try hang(task)
        // The task ends after its promise has settled, and then wakes the loop.
        spin { (try? loop.turn(.poll)) != nil && loop.keepAliveReport.isEmpty }
    }
}
