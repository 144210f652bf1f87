import Glibc
import Reactor
import TestSupport
import Testing

/// A step of the system clock moves no timer. Stepping needs privileges, so the test shows that no steppable clock is
/// read.
@Suite struct SteppedClockTests {
    @Test func theKernelsTimerCountsOnTheMonotonicClock() throws {
        let fd = CInt(try Syscalls().timerCreate().orThrow(.timerCreate))
        defer { close(fd) }
        let info = open("/proc/self/fdinfo/\(fd)", O_RDONLY | O_CLOEXEC)
        defer { close(info) }
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = read(info, &bytes, bytes.count)
        let lines = String(decoding: bytes[..<count], as: UTF8.self).split(separator: "\n")
        expect(lines.contains("clockid: \(CLOCK_MONOTONIC)"), "\(lines)")
    }

    @Test func deadlinesAreMomentsOfThatClock() throws {
        let ledger = Ledger()
        try EventLoop.withLoop(syscalls: ledger.table) { loop in
            var before = timespec()
            clock_gettime(CLOCK_MONOTONIC, &before)
            loop.schedule(after: .milliseconds(2)) {}
            try loop.run()
            var after = timespec()
            clock_gettime(CLOCK_MONOTONIC, &after)
            let nanoseconds = { (time: timespec) in time.tv_sec * 1_000_000_000 + time.tv_nsec }
            let deadline = nanoseconds(try #require(ledger.deadlines.first))
            expect(deadline >= nanoseconds(before) + 2_000_000)
            expect(deadline <= nanoseconds(after))
            expect(loop.now.nanoseconds >= nanoseconds(after))
        }
    }
}
