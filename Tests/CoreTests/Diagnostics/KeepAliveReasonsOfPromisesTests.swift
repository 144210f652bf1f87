@testable import PromisesTestSupport

/// The keep-alive report of a loop that promises wait for.
struct KeepAliveReasonsOfPromisesTests {
    @Test(.network) func listenersConnectionsAndChildrenHaveNames() throws {
        let listener = try net.listen()
        let accepting = listener.accept()
        let (first, second) = try Connection.pair()
        let reading = first.read()
        let child = try ChildProcess.spawn("/bin/sleep", arguments: ["1000"])
        let reasons = net.loop.keepAliveReport
        let users = Set(reasons.descriptors.map(\.user))
        expectEqual("\(listener)", "Listener(\(listener.localAddress))")
        expectEqual(users, ["Listener(\(listener.localAddress))", "\(first)", "\(child)"])
        expectEqual(reasons.descriptors.count, 3)
        expectEqual("\(child)", "child \(child.processID) (/bin/sleep)")

        accepting.cancel()
        listener.close()
        reading.cancel()
        second.close()
        first.close()
        try child.kill(SIGKILL)
        try net.loop.run()
        expect(net.loop.keepAliveReport.isEmpty)
    }

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
