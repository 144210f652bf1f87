/// The fate of everything that a loop still has when it ends.
struct LoopCloseTests {
    @Test func everythingItHoldsIsReleasedUnrun() throws {
        let tally = Tally()
        let pipe = Ends.pipe()
        try EventLoop.withLoop { loop in
            loop.schedule(after: .seconds(1), tally.bound { Issue.record("timer") })
            loop.schedule(every: .seconds(1), tally.bound { Issue.record("repeating timer") })
            let handler = tally.bound { Issue.record("watch") }
            _ = try loop.watch(pipe.near, for: .reading) { _ in handler() }
            put(into: pipe.far)
            expectEqual(tally.alive, 3)
        }
        expectEqual(tally.alive, 0)
    }

    @Test func itTakesNoJobsAndCannotBeDrivenAnyMore() {
        let tally = Tally()
        let (loop, remote) = EventLoop.withLoop { ($0, $0.remote) }
        expect(!remote.submit(tally.boundForThreads()))
        expectEqual(tally.alive, 0)
        expect(TestThread.run { !remote.submit(tally.boundForThreads()) })
        expectEqual(tally.alive, 0)
        expect(!remote.stop())
        #expect(throws: SystemError(.epollWait, EBADF)) { try loop.turn(.poll) }
    }

    @Test func whatTheReleaseOfAJobQueuesIsReleasedToo() {
        let tally = Tally()
        EventLoop.withLoop { loop in
            let words = LastWords {
                loop.enqueue(tally.bound { Issue.record("the loop has ended") })
                loop.schedule(after: .zero, tally.bound { Issue.record("the loop has ended") })
            }
            loop.enqueue { withExtendedLifetime(words) {} }
        }
        expectEqual(tally.alive, 0)
    }

    @Test func allDescriptorsOfALoopAreClosed() throws {
        let ledger = Ledger()
        try EventLoop.withLoop(syscalls: ledger.table) { loop in
            let remote = loop.remote
            let received = Counter()
            let helper = TestThread { remote.submit { received.add() } }
            try loop.drive { received.value == 1 }
            helper.join()
            loop.schedule(after: .milliseconds(1)) {}
            try loop.run()
            expectEqual(ledger.open.count, 3, "epoll, mailbox, timer")
            for fd in ledger.open { expect(fcntl(fd, F_GETFD) & FD_CLOEXEC != 0) }
        }
        expect(ledger.open.isEmpty)
        expectEqual(ledger.openedCount, 3)
    }

    /// The eventfd's number belongs to another file, to which the wake-up cannot be written.
    @Test(.ownThread) func aWakeUpThatIsLostHoldsUpNeitherTheLoopNorItsEnd() async {
        await #expect(processExitsWith: .success) {
            // The process would wait forever.
            alarm(20)
            let ledger = Ledger()
            var table = ledger.table
            let create = table.eventCreate
            var eventfd: CInt = -1
            table.eventCreate = {
                let fd = create()
                eventfd = CInt(fd)
                return fd
            }
            try EventLoop.withLoop(syscalls: table) { loop in
                // Leaves the mailbox parked between turns.
                let descriptor = try loop.fileDescriptor
                try loop.turn(.poll)
                let null = open("/dev/null", O_RDONLY | O_CLOEXEC)
                dup2(null, eventfd)
                let hasRun = Shared(false)
                precondition(loop.remote.submit { hasRun.change { $0 = true } })
                var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
                precondition(poll(&entry, 1, 10_000) == 1, "the loop would not wake")
                try loop.turn(.wait)
                precondition(hasRun.value)
            }
        }
    }

    @Test func whatIsHandedToItAfterwardsIsReleasedAtOnce() {
        let tally = Tally()
        weak var ended: EventLoop?
        do {
            let loop = EventLoop.withLoop { $0 }
            ended = loop
            // Each would retain the loop that retains it.
            loop.enqueue(tally.bound { withExtendedLifetime(loop) {} })
            let timers = [
                loop.schedule(after: .seconds(1), tally.bound { withExtendedLifetime(loop) {} }),
                loop.schedule(at: .distantFuture, tally.bound { withExtendedLifetime(loop) {} }),
                loop.schedule(every: .seconds(1), tally.bound { withExtendedLifetime(loop) {} }),
            ]
            loop.beforeWaiting(tally.bound { withExtendedLifetime(loop) {} })
            loop.afterWaiting(tally.bound { withExtendedLifetime(loop) {} }).cancel()
            expectEqual(tally.alive, 0)
            expect(timers.allSatisfy { !$0.isActive })
            expect(timers.allSatisfy { !$0.cancel() })
        }
        expect(ended == nil)
    }

    /// A step of the end at which code of the user runs.
    enum Step: CaseIterable { case job, local, whenEnded }

    @Test(arguments: Step.allCases) func whatAnotherThreadReleasesMeanwhileIsCleanedUpByTheLoopsOwn(step: Step) {
        let cleaner = Shared<pthread_t?>(nil)
        let isEarly = Shared(false)
        var local: LoopLocal<LastWords>?
        let ended = EventLoop.withLoop { loop in
            nonisolated(unsafe) let loop = loop
            let release = { @Sendable in
                TestThread { loop.performCleanup { cleaner.value = pthread_self() } }.join()
                if cleaner.value != nil { isEarly.value = true }
            }
            switch step {
            case .job:
                let words = LastWords(release)
                loop.enqueue { words.use() }
            case .local:
                local = LoopLocal { LastWords(release) }
                _ = local?.value(on: loop)
            case .whenEnded: loop.remote.whenEnded(release)
            }
            return loop
        }
        expect(!isEarly.value, "while the loop's thread ends the loop")
        expectEqual(cleaner.value, pthread_self())
        // Afterwards there is nothing that it could meet.
        let isDone = Shared(false)
        nonisolated(unsafe) let loop = ended
        TestThread { loop.performCleanup { isDone.value = true } }.join()
        expect(isDone.value)
        withExtendedLifetime(local) {}
    }
}

/// The report of a loop's undelivered work. It goes to one process-wide handler, so the test has a separate process.
struct UndeliveredReportTests {
    /// The reports during `body`.
    private static func reports(during body: () -> Void) -> [Int] {
        let counts = SharedList<Int>()
        let handler = ReportHandler<LoopEvent> { if case .undelivered(let count) = $0 { counts.append(count) } }
        LoopEvent.handler.withLock { $0 = handler }
        body()
        return counts.value
    }

    @Test(.ownThread) func mailThatALoopLeavesBehindIsReportedTooAndNoneIsForgotten() async {
        await #expect(processExitsWith: .success) {
            let left = UndeliveredReportTests.reports {
                EventLoop.withLoop { loop in
                    let remote = loop.remote
                    for _ in 0..<4000 { remote.submit {} }
                    for _ in 0..<3907 { loop.enqueue {} }
                }
                // A stop that comes too late is no handler.
                EventLoop.withLoop { loop in _ = loop.remote.stop() }
            }
            expectEqual(left, [7907])
            // Submissions race with the end.
            let tally = Tally()
            let accepted = Counter()
            let run = Counter()
            let reports = UndeliveredReportTests.reports {
                for _ in 0..<200 {
                    let tries = Counter()
                    let helper = EventLoop.withLoop { loop in
                        let remote = loop.remote
                        let helper = TestThread {
                            while tries.value < 1000, remote.submit(tally.boundForThreads { run.add() }) {
                                accepted.add()
                                tries.add()
                            }
                        }
                        spin { tries.value > 3 }
                        try! loop.turn(.poll)
                        return helper
                    }
                    helper.join()
                }
            }
            expectEqual(tally.alive, 0)
            expectEqual(run.value + reports.reduce(0, +), accepted.value)
        }
    }
}

/// The closures that a loop calls at its end.
struct LoopEndingTests {
    @Test func theyAreCalledInTheirOrderWithoutThoseThatOneHasForgotten() {
        var calls: [Int] = []
        EventLoop.withLoop { loop in
            var ids: [Int] = []
            for number in 0..<5 {
                ids.append(
                    loop.whenEnding {
                        calls.append(number)
                        if number == 0 {
                            loop.forgetEnding(ids[1])
                            loop.forgetEnding(ids[3])
                            // The loop has ended, so this one is released.
                            _ = loop.whenEnding { calls.append(5) }
                        }
                    })
            }
        }
        expectEqual(calls, [0, 2, 4])
    }
}
