/// Jobs from other threads.
struct MailboxTests {
    private let loop = EventLoop.current

    /// The numbers of the jobs that have run. Only the loop's thread touches them, although the closures that do so come
    /// from others.
    private final class Inbox: @unchecked Sendable { var numbers: [Int] = [] }

    @Test(.inRealTime) func aLoopThatIsBusyIsNotWokenAtAll() throws {
        let (threads, jobs) = (8, 2000)
        let inbox = Inbox()
        let remote = loop.remote
        loop.enqueue {
            let helpers = (0..<threads).map { thread in
                TestThread {
                    for job in 0..<jobs { remote.submit { inbox.numbers.append(thread * jobs + job) } }
                }
            }
            for helper in helpers { helper.join() }
        }
        try loop.run()
        for thread in 0..<threads {
            let own = thread * jobs..<(thread + 1) * jobs
            expect(inbox.numbers.filter(own.contains) == Array(own), "the order of a thread's jobs")
        }
        expectEqual(loop.metrics.wakeups, 0)
        expectEqual(loop.metrics.systemCalls[.eventCreate], nil)
    }

    /// Where the loop is on its way to sleep when mail comes.
    enum Moment: CaseIterable { case beforeItDecides, beforeItSleeps, withAnInterruption }

    @Test(arguments: Moment.allCases) func aBurstOnTheWayToSleepWakesItOnceAtMost(moment: Moment) throws {
        let inbox = Inbox()
        var remote: LoopRemote?
        func send() {
            guard let sender = remote.take() else { return }
            TestThread.run { for number in 0..<100 { sender.submit { inbox.numbers.append(number) } } }
        }
        var syscalls = Syscalls()
        let real = syscalls
        if moment == .beforeItDecides {
            syscalls.timerSet = {
                send()
                return real.timerSet($0, $1)
            }
        } else {
            syscalls.epollWait = {
                guard $3 < 0, remote != nil else { return real.epollWait($0, $1, $2, $3) }
                send()
                return moment == .withAnInterruption ? -Int(EINTR) : real.epollWait($0, $1, $2, $3)
            }
        }
        try EventLoop.withLoop(syscalls: syscalls) { loop in
            remote = loop.remote
            try loop.drive { inbox.numbers.count == 100 }
            expectEqual(inbox.numbers, Array(0..<100))
            expectEqual(loop.metrics.wakeups, moment == .beforeItDecides ? 0 : 1)
            expectEqual(loop.metrics.turns, 1)
        }
    }

    @Test(.inRealTime) func whatALoopSubmitsToItselfRunsInTheSameTurn() throws {
        let inbox = Inbox()
        let remote = loop.remote
        remote.submit { remote.submit { inbox.numbers.append(0) } }
        expect(loop.isAlive && loop.isReady)
        try loop.turn(.poll)
        expectEqual(inbox.numbers, [0])
        expect(!loop.isAlive)
    }
}
