import Reactor
import TestSupport
import Testing

/// The cost of submissions from another thread.
@Suite struct MailboxBurstTests {
    @Test func aBurstWakesTheLoopOnceADrainAtMost() throws {
        try EventLoop.withLoop { loop in
            let remote = loop.remote
            let bursts = 10_000
            let size = 100
            var received = 0
            // The loop's own count, which needs no lock.
            let count = Alone { received += 1 }
            let helper = TestThread {
                for _ in 0..<bursts {
                    for _ in 0..<size { remote.submit { count.body() } }
                }
            }
            try loop.drive(atMost: .seconds(120)) { received == bursts * size }
            helper.join()
            let metrics = loop.metrics
            expectEqual(metrics.jobs, bursts * size)
            // Each wake-up is one write of the eventfd, and ends one wait.
            expect(metrics.wakeups <= metrics.systemCalls[.epollWait, default: 0])
            expect(metrics.wakeups <= metrics.turns)
            // The eventfd and the timerfd; neither, if mail always arrived before the loop could wait.
            expect([0, 2].contains(metrics.systemCalls[.epollControl, default: 0]))
        }
    }
}

/// A closure that crosses threads but is called on only one.
// @unchecked: only the loop's thread calls it.
private final class Alone: @unchecked Sendable {
    let body: () -> Void
    init(_ body: @escaping () -> Void) { self.body = body }
}
