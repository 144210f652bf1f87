/// The fate of everything that a loop still has when it ends.
struct LoopCloseTests {
    @Test func everythingItHoldsIsReleasedUnrun() throws {
        let tally = Tally()
        let pipe = Ends.pipe()
        try EventLoop.withLoop { loop in
            loop.enqueue(tally.bound { Issue.record("job") })
            loop.schedule(after: .seconds(1), tally.bound { Issue.record("timer") })
            loop.schedule(every: .seconds(1), tally.bound { Issue.record("repeating timer") })
            let handler = tally.bound { Issue.record("watch") }
            _ = try loop.watch(pipe.near, for: .reading) { _ in handler() }
            put(into: pipe.far)
            expectEqual(tally.alive, 4)
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

    /// Each once: it is closed although the call is interrupted, see close(2).
    @Test func allDescriptorsOfALoopAreClosed() throws {
        let ledger = Ledger()
        var table = ledger.table
        var closed = 0
        table.close = { [real = table.close] in
            closed += 1
            _ = real($0)
            return -Int(EINTR)
        }
        try EventLoop.withLoop(syscalls: table) { loop in
            loop.schedule(after: .milliseconds(1)) {}
            try loop.run()
            _ = try loop.onSignal(SIGURG) {}
            expectEqual(ledger.open.count, 4, "epoll, mailbox, timer, signals")
            for fd in ledger.open { expect(fcntl(fd, F_GETFD) & FD_CLOEXEC != 0) }
        }
        expect(ledger.open.isEmpty)
        expectEqual(closed, 4)
    }

    /// The eventfd's number belongs to another file, to which the wake-up cannot be written.
    @Test(.ownThread) func aWakeUpThatIsLostHoldsUpNeitherTheLoopNorItsEnd() async {
        await #expect(processExitsWith: .success) {
            // The process would wait forever.
            alarm(20)
            var table = Syscalls()
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
                precondition(isReadable(descriptor, within: 10_000), "the loop would not wake")
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
    @Test(.ownThread) func countsJobsAndMail() async {
        await #expect(processExitsWith: .success) {
            let counts = SharedList<Int>()
            let handler = ReportHandler<LoopEvent> { if case .undelivered(let count) = $0 { counts.append(count) } }
            LoopEvent.handler.withLock { $0 = handler }
            EventLoop.withLoop { loop in
                for _ in 0..<40 { loop.remote.submit {} }
                for _ in 0..<3 { loop.enqueue {} }
            }
            // A stop that comes too late is no handler.
            EventLoop.withLoop { loop in _ = loop.remote.stop() }
            expectEqual(counts.value, [43])
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
