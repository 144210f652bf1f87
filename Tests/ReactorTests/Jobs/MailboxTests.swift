/// Jobs from other threads.
struct MailboxTests {
    private let loop = EventLoop.current

    /// State that only the loop's thread touches, although the closures that do so come from others.
    private final class Inbox: @unchecked Sendable {
        let thread = pthread_self()
        var last: [Int]
        var count = 0
        var disorders = 0
        var strays = 0

        init(threads: Int) { last = Array(repeating: -1, count: threads) }

        func accept(_ index: Int, from thread: Int) {
            count += 1
            if last[thread] + 1 != index { disorders += 1 }
            last[thread] = index
            if pthread_equal(self.thread, pthread_self()) == 0 { strays += 1 }
        }
    }

    private static let threads = 8
    private static let jobs = 10_000

    private func startThreads(_ remote: LoopRemote, _ inbox: Inbox, _ refusals: Counter) -> [TestThread] {
        (0..<Self.threads).map { thread in
            TestThread {
                for index in 0..<Self.jobs {
                    if !remote.submit({ inbox.accept(index, from: thread) }) { refusals.add() }
                }
            }
        }
    }

    @Test(.inRealTime) func aLoopThatIsBusyIsNotWokenAtAll() throws {
        let inbox = Inbox(threads: Self.threads)
        let remote = loop.remote
        let refusals = Counter()
        loop.enqueue { startThreads(remote, inbox, refusals).forEach { $0.join() } }
        try loop.run()
        expectEqual(inbox.count, Self.threads * Self.jobs)
        expect(inbox.disorders == 0 && inbox.strays == 0)
        expectEqual(refusals.value, 0)
        expectEqual(loop.metrics.wakeups, 0)
        expectEqual(loop.metrics.systemCalls[.eventCreate], nil)
    }

    /// The hook runs after the loop has decided to sleep and before it sleeps.
    @Test(.inRealTime) func aBurstToALoopThatIsAboutToSleepWakesItOnce() throws {
        let inbox = Inbox(threads: 1)
        var remote: LoopRemote?
        var syscalls = Syscalls()
        let wait = syscalls.epollWait
        syscalls.epollWait = { epoll, events, count, timeout in
            if timeout < 0, let sender = remote {
                remote = nil
                TestThread.run { for index in 0..<100 { sender.submit { inbox.accept(index, from: 0) } } }
            }
            return wait(epoll, events, count, timeout)
        }
        try EventLoop.withLoop(syscalls: syscalls) { loop in
            remote = loop.remote
            try loop.drive { inbox.count == 100 }
            expectEqual(inbox.disorders, 0)
            expectEqual(loop.metrics.wakeups, 1)
            expectEqual(loop.metrics.turns, 1)
        }
    }

    /// The hook runs between the last look at the mail and the decision to sleep.
    @Test(.inRealTime) func mailThatComesJustBeforeTheLoopDecidesToSleepKeepsItAwake() throws {
        let inbox = Inbox(threads: 1)
        var remote: LoopRemote?
        var syscalls = Syscalls()
        let set = syscalls.timerSet
        syscalls.timerSet = { fd, deadline in
            if let sender = remote { TestThread.run { _ = sender.submit { inbox.accept(0, from: 0) } } }
            remote = nil
            return set(fd, deadline)
        }
        try EventLoop.withLoop(syscalls: syscalls) { loop in
            remote = loop.remote
            try loop.drive { inbox.count == 1 }
            expectEqual(loop.metrics.wakeups, 0)
            expectEqual(loop.metrics.turns, 1)
        }
    }

    @Test(.inRealTime) func noSubmissionIsLostWhileTheLoopGoesToSleep() throws {
        let (rounds, sleeps) = (100_000, 100)
        let served = Counter()
        let isOver = Counter()
        let loop = EventLoop.current
        let remote = loop.remote
        let helper = TestThread {
            var round = 0
            while isOver.value == 0 {
                remote.submit { served.add() }
                spin { served.value > round || isOver.value > 0 }
                round += 1
                // A little later each time, to cover every point of the loop's way to sleep.
                for _ in 0..<(round & 63) { _ = isOver.value }
            }
        }
        // On a busy machine the loop seldom sleeps: continue until it has slept often enough to show something.
        try loop.drive(atMost: .seconds(60)) { served.value >= rounds && loop.metrics.wakeups > sleeps }
        isOver.add()
        helper.join()
    }

    @Test(.inRealTime) func whatALoopSubmitsToItselfRunsInTheSameTurn() throws {
        let inbox = Inbox(threads: 1)
        let remote = loop.remote
        remote.submit { remote.submit { inbox.accept(0, from: 0) } }
        expect(loop.isAlive && loop.isReady)
        try loop.turn(.poll)
        expectEqual(inbox.count, 1)
        expect(!loop.isAlive)
    }
}
