import Reactor
import TestSupport
import Testing

/// A thread that drives its own loop until it is told to stop.
final class Driver: Sendable {
    private let thread: TestThread
    let remote: LoopRemote

    init() {
        let door = Shared<LoopRemote?>(nil)
        let ready = Gate()
        thread = TestThread {
            let loop = EventLoop.current
            let hold = loop.hold()
            let remote = loop.remote
            door.change { $0 = remote }
            ready.open()
            do { try loop.run() } catch { Issue.record(error, "the loop of a driver cannot run") }
            hold.cancel()
        }
        ready.wait()
        remote = door.value!
    }

    /// Runs `body` on the thread, and waits for its answer.
    func run<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
        await withCheckedContinuation { continuation in
            _ = remote.submit { continuation.resume(returning: body()) }
        }
    }

    func end() {
        remote.stop()
        thread.join()
    }
}
