import CLinux
import Synchronization

extension ProcessWide {
    /// Watching signals. Each test restores the previous actions.
    @Suite(.hearingSignals) struct SignalTests {
        private let loop = EventLoop.current

        /// The address of the handler that stands for `signal`.
        private func handler(of signal: CInt) -> Int {
            var action = sigaction()
            sigaction(signal, nil, &action)
            return unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self)
        }

        @Test(arguments: [SIGTERM, SIGINT, SIGCHLD, SIGUSR1])
        func aHundredQuickSignalsAreReportedAtLeastOnce(signal: CInt) throws {
            var reports = 0
            let watch = try loop.onSignal(signal) { reports += 1 }
            for _ in 0..<100 { raise(signal) }
            expectEqual(reports, 0, "never inside the signal itself")
            try loop.turn(.wait)
            expect((1...100).contains(reports))
            let before = reports
            raise(signal)
            try loop.turn(.wait)
            expectEqual(reports, before + 1)
            watch.cancel()
        }

        /// The eventfd's number belongs to another file, to which the signal cannot be written.
        @Test func oneThatInterruptsAWaitIsReportedThoughItsWriteIsLost() throws {
            var table = Syscalls()
            let real = table
            var eventfd: CInt = -1
            table.eventCreate = {
                let fd = real.eventCreate()
                if eventfd < 0 { eventfd = CInt(fd) }
                return fd
            }
            var interrupts = true
            table.epollWait = {
                guard interrupts else { return real.epollWait($0, $1, $2, $3) }
                interrupts = false
                raise(SIGUSR1)
                return -Int(EINTR)
            }
            try EventLoop.withLoop(syscalls: table) { loop in
                var reports = 0
                let watch = try loop.onSignal(SIGUSR1) { reports += 1 }
                let null = open("/dev/null", O_RDONLY | O_CLOEXEC)
                defer { close(null) }
                dup2(null, eventfd)
                try loop.turn(.poll)
                expectEqual(reports, 1)
                watch.cancel()
            }
        }

        private static let hitsOfOldAction = Atomic<Int>(0)

        /// Calls `body` while the action of SIGUSR2 counts, and returns the count.
        private func countingOldAction(_ body: () throws -> Void) rethrows -> Int {
            var (action, found) = (sigaction(), sigaction())
            action.__sigaction_handler.sa_handler = { _ in SignalTests.hitsOfOldAction.add(1, ordering: .relaxed) }
            sigaction(SIGUSR2, &action, &found)
            defer { sigaction(SIGUSR2, &found, nil) }
            Self.hitsOfOldAction.store(0, ordering: .relaxed)
            try body()
            return Self.hitsOfOldAction.load(ordering: .relaxed)
        }

        @Test func theLastCancelPutsThePreviousActionBackAndASignalThatIsBlockedThenGoesThere() throws {
            let hits = try countingOldAction {
                let old = handler(of: SIGUSR2)
                let watches = try (0..<2).map { _ in try loop.onSignal(SIGUSR2) { Issue.record("cancelled") } }
                expect(handler(of: SIGUSR2) != old)
                watches[0].cancel()
                expect(handler(of: SIGUSR2) != old)
                withSignals(SIG_BLOCK, [SIGUSR2]) {
                    raise(SIGUSR2)
                    for _ in 0..<2 { watches[1].cancel() }
                    expectEqual(handler(of: SIGUSR2), old)
                }
            }
            expectEqual(hits, 1)
            try loop.turn(.poll)
        }

        /// How far a signal has come when its watch ends.
        enum Progress: CaseIterable { case arrived, queued, handled }
        /// Who else would take it: nobody; a watch that it has reached as well, or one that began later, on the same
        /// loop or on another one.
        enum Heir: CaseIterable { case action, watch, laterWatch, loop, laterLoop }

        @Test(arguments: Progress.allCases, Heir.allCases)
        func aSignalThatHasArrivedWhenItsWatchEndsIsNotLost(progress: Progress, heir: Heir) throws {
            var (calls, heirCalls) = (0, 0)
            let tally = Tally()
            let hits = try countingOldAction {
                let heirs = heir == .loop || heir == .laterLoop ? try EventLoop.spawn(name: "heir") : nil
                let (begun, heard) = (Counter(), Counter())
                var heirWatch: EventLoop.Watch?
                let begin = {
                    if let heirs {
                        heirs.submit {
                            _ = try! EventLoop.current.onSignal(SIGUSR2) { heard.add() }
                            begun.add()
                        }
                        spin { begun.value == 1 }
                    } else if heir != .action {
                        heirWatch = try loop.onSignal(SIGUSR2) { heirCalls += 1 }
                    }
                }
                var watch: EventLoop.Watch?
                let end = {
                    if heir == .laterWatch || heir == .laterLoop { try begin() }
                    watch?.cancel()
                }
                let sooner = try loop.onSignal(SIGUSR1) { if progress == .queued { try! end() } }
                watch = try loop.onSignal(SIGUSR2, tally.bound { calls += 1 })
                if heir == .watch || heir == .loop { try begin() }
                raise(SIGUSR1)
                raise(SIGUSR2)
                if progress != .arrived { try loop.turn(.poll) }
                if progress != .queued { try end() }
                expectEqual(tally.alive, 0)
                for _ in 0..<3 { try loop.turn(.poll) }
                sooner.cancel()
                if let heirs {
                    // Both loops have it, or only the one that heard it first.
                    let expected = heir == .laterLoop && progress == .handled ? 0 : 1
                    spin { heard.value >= expected }
                    // A signal that came twice would have been delivered by now.
                    let turned = Counter()
                    for _ in 0..<3 { heirs.submit { turned.add() } }
                    spin { turned.value == 3 }
                    expectEqual(heard.value, expected)
                    heirs.stop()
                    heirs.join()
                }
                heirWatch?.cancel()
            }
            expectEqual(calls, progress == .handled ? 1 : 0)
            expectEqual(hits, heir == .action && progress != .handled ? 1 : 0)
            let hears = heir == .watch || heir == .laterWatch && progress != .handled
            expectEqual(heirCalls, hears ? 1 : 0)
        }

        @Test func atTheEndOfItsLoopASignalGoesToTheRestoredAction() throws {
            let hits = try countingOldAction {
                try EventLoop.withLoop { loop in
                    _ = try loop.onSignal(SIGUSR2) { Issue.record("the loop has ended") }
                    raise(SIGUSR2)
                }
            }
            expectEqual(hits, 1)
        }

        @Test func aThreadThatBlocksTheSignalByThenLeavesItToOthers() throws {
            let hits = try countingOldAction {
                let watch = try loop.onSignal(SIGUSR2) { Issue.record("cancelled") }
                raise(SIGUSR2)
                withSignals(SIG_BLOCK, [SIGUSR2]) {
                    watch.cancel()
                    let helper = TestThread {
                        withSignals(SIG_UNBLOCK, [SIGUSR2]) {
                            spin { Self.hitsOfOldAction.load(ordering: .relaxed) == 1 }
                        }
                    }
                    helper.join()
                }
            }
            expectEqual(hits, 1)
        }

        /// A thread of a C library may have a stack that is too small for a signal's frame, and another for signals.
        @Test func theActionRunsOnAThreadsAlternativeStack() throws {
            let watch = try loop.onSignal(SIGUSR1) {}
            let isUsed = Shared(false)
            let helper = TestThread {
                let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 64)
                defer { memory.deallocate() }
                memory.initializeMemory(as: UInt8.self, repeating: 0xA5)
                var (stack, none) = (stack_t(), stack_t())
                stack.ss_sp = memory.baseAddress
                stack.ss_size = memory.count
                none.ss_flags = CInt(SS_DISABLE)
                sigaltstack(&stack, nil)
                withSignals(SIG_UNBLOCK, [SIGUSR1]) { _ = raise(SIGUSR1) }
                sigaltstack(&none, nil)
                isUsed.value = memory.contains { $0 != 0xA5 }
            }
            helper.join()
            expect(isUsed.value)
            try loop.turn(.poll)
            watch.cancel()
        }

        /// A thread of the library that raises a signal.
        enum Raiser: CaseIterable { case loop, laterLoop, pool, laterPool }

        /// Whether the kernel holds `signal` back from a thread of this process.
        private func isBlocked(_ signal: CInt, on thread: CInt) -> Bool {
            let status = text(ofFile: "/proc/self/task/\(thread)/status")
            let line = status.split(separator: "\n").first { $0.hasPrefix("SigBlk:") }
            let mask = line.flatMap { UInt64($0.dropFirst(8), radix: 16) } ?? 0
            return mask >> (signal - 1) & 1 == 1
        }

        /// raise(3) signals the calling thread, and the library's threads block unwatched signals.
        @Test(arguments: Raiser.allCases) func whatAThreadOfTheLibraryRaisesIsHeard(raiser: Raiser) throws {
            let pool = try ThreadPool(name: "raising", threads: 1)
            var worker: LoopRemote?
            if raiser == .loop { worker = try EventLoop.spawn(name: "raising") }
            let hasBegun = Counter()
            if raiser == .pool { try pool.dispatch { hasBegun.add() } } else { hasBegun.add() }
            spin { hasBegun.value == 1 }
            var reports = 0
            let watch = try loop.onSignal(SIGUSR1) { reports += 1 }
            if raiser == .laterLoop { worker = try EventLoop.spawn(name: "raising") }
            for number in 1...3 {
                if let worker { worker.submit { raise(SIGUSR1) } } else { try pool.dispatch { raise(SIGUSR1) } }
                try loop.drive { reports == number }
            }
            // Unwatched signals stay blocked.
            let thread = Shared<CInt>(0)
            let look: @Sendable () -> Void = {
                thread.value = clinux_gettid()
                hasBegun.add()
            }
            if let worker { worker.submit(look) } else { try pool.dispatch(look) }
            spin { hasBegun.value == 2 }
            let blocked = { [SIGUSR1, SIGVTALRM, SIGPIPE].filter { isBlocked($0, on: thread.value) } }
            if worker != nil { expectEqual(blocked(), [SIGVTALRM, SIGPIPE]) }
            watch.cancel()
            // Also by a thread that sleeps: the signal would end the process there.
            let began = ContinuousClock.now
            spin { blocked().count == 3 || ContinuousClock.now - began > .seconds(10) }
            expectEqual(blocked(), [SIGUSR1, SIGVTALRM, SIGPIPE])
            worker?.stop()
            worker?.join()
            pool.shutDown()
        }

        @Test func severalLoopsHearTheSameSignalUntilEachHasEnded() throws {
            let old = handler(of: SIGUSR1)
            let (ready, heard) = (Counter(), Counter())
            let helpers = (0..<3).map { _ in
                TestThread {
                    let loop = EventLoop.current
                    var reports = 0
                    _ = try! loop.onSignal(SIGUSR1) {
                        reports += 1
                        heard.add()
                    }
                    ready.add()
                    try! loop.drive { reports == 1 }
                }
            }
            var reports = 0
            let watch = try loop.onSignal(SIGUSR1) { reports += 1 }
            spin { ready.value == 3 }
            kill(getpid(), SIGUSR1)
            try loop.drive { reports == 1 }
            helpers.forEach { $0.join() }
            expectEqual(heard.value, 3)

            // The others have ended with their threads, without a cancel.
            raise(SIGUSR1)
            try loop.drive { reports == 2 }
            expectEqual(heard.value, 3)
            expect(handler(of: SIGUSR1) != old)
            watch.cancel()
            expectEqual(handler(of: SIGUSR1), old)
        }

        /// What waits on the loop until its end.
        enum Waiting: CaseIterable { case job, timer, watch, signal, hook }

        @Test(arguments: Waiting.allCases) func nothingThatIsBegunDuringTheEndOutlivesIt(waiting: Waiting) throws {
            let tally = Tally()
            let pipe = Ends.pipe()
            let old = handler(of: SIGTERM)
            var refusals: [SystemError?] = []
            try EventLoop.withLoop { loop in
                let words = LastWords {
                    let begin = [
                        { _ = try loop.onSignal(SIGTERM, tally.bound()) },
                        { _ = try loop.spawn(SpawnRequest("/bin/true")) },
                    ]
                    refusals = begin.map { failure($0) as? SystemError }
                    let hears = tally.bound()
                    _ = try? loop.watch(pipe.near, for: .reading) { _ in hears() }
                    loop.enqueue(tally.bound())
                    loop.schedule(after: .zero, tally.bound())
                    loop.schedule(at: .distantFuture, tally.bound())
                    loop.beforeWaiting(tally.bound())
                }
                _ = try loop.watch(pipe.near, for: .writing) { _ in if waiting == .watch { words.use() } }
                _ = try loop.onSignal(SIGUSR2) { if waiting == .signal { words.use() } }
                switch waiting {
                case .job: loop.enqueue { words.use() }
                case .timer: loop.schedule(after: .seconds(1)) { words.use() }
                case .hook: loop.beforeWaiting { words.use() }
                case .watch, .signal: break
                }
            }
            expectEqual(handler(of: SIGTERM), old, "the action is the library's for ever")
            expectEqual(refusals, Array(repeating: SystemError(.epollCreate, EBADF), count: 2))
            expectEqual(tally.alive, 0)
        }

        @Test func aSignalEndsASleepAndLeavesErrnoAlone() throws {
            var reports = 0
            let watch = try loop.onSignal(SIGUSR1) { reports += 1 }
            let helper = TestThread { kill(getpid(), SIGUSR1) }
            try loop.drive { reports == 1 }
            helper.join()
            errno = 77
            raise(SIGUSR1)
            expectEqual(errno, 77)
            try loop.turn(.wait)
            watch.cancel()
        }

        @Test func aTurnInAHandlerDeliversTheOtherSignalsThatHaveComeButNoneThatIsCancelled() throws {
            var log: [String] = []
            let first = try loop.onSignal(SIGUSR1) {
                log.append("first begins")
                for _ in 0..<10 where !log.contains("second") { try! loop.turn(.poll) }
                log.append("first ends")
            }
            let second = try loop.onSignal(SIGUSR2) { log.append("second") }
            var last: EventLoop.Watch?
            let again = try loop.onSignal(SIGUSR1) {
                log.append("again")
                last?.cancel()
            }
            last = try loop.onSignal(SIGUSR1) { log.append("cancelled by the one before") }
            raise(SIGUSR1)
            raise(SIGUSR2)
            try loop.turn(.wait)
            expectEqual(log, ["first begins", "second", "again", "first ends"])
            for watch in [first, second, again] { watch.cancel() }
        }

        @Test func signalsThatKeepArrivingDoNotHoldUpTheTurn() throws {
            var (calls, jobs, turns) = (0, 0, 0)
            let watches = try (0..<2).map { _ in
                try loop.onSignal(SIGUSR1) {
                    calls += 1
                    loop.enqueue { jobs += 1 }
                    // Bounded, so that the test ends even if the turn does not. The last turn leaves none on its way.
                    if turns < 3 && calls < 1000 { raise(SIGUSR1) }
                }
            }
            raise(SIGUSR1)
            for turn in 1...3 {
                turns = turn
                try loop.turn(.poll)
                expect(calls == 2 * turn && jobs == calls, "each watch is called once a turn")
            }
            for watch in watches { watch.cancel() }
        }

        private static let refused: [CInt: String] = [
            -1: "no such signal", 0: "no such signal", 65: "no such signal", .max: "no such signal",
            SIGKILL: "cannot be caught", SIGSTOP: "cannot be caught",
            SIGSEGV: "a fault", SIGBUS: "a fault", SIGFPE: "a fault", SIGILL: "a fault", SIGTRAP: "a fault",
            SIGSYS: "a fault", SIGABRT: "a fault",
        ]

        @Test(arguments: refused) func aSignalThatCannotBeWatchedIsRefused(signal: CInt, reason: String) {
            let tally = Tally()
            let old = (1...64).contains(signal) ? handler(of: signal) : 0
            let error = failure { _ = try loop.onSignal(signal, tally.bound()) } as? SystemError
            expectEqual(error, SystemError(.sigaction, EINVAL))
            expect(error?.description.contains(reason) == true)
            if old != 0 { expectEqual(handler(of: signal), old) }
            expectEqual(tally.alive, 0)
            expect(!loop.isAlive)
        }

        @Test func aHundredThousandWatchesOfOneSignalComeAndGo() throws {
            try expectProportional(100_000) { count in
                var reports = 0
                let watches = try (0..<count).map { _ in try loop.onSignal(SIGUSR1) { reports += 1 } }
                raise(SIGUSR1)
                try loop.run(until: { reports == count })
                for index in watches.indices { watches[index * 7919 % count].cancel() }
            }
        }
    }
}
