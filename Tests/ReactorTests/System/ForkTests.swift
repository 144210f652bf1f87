import CLinux

/// The process's state in a forked child. In separate processes, which have only the test's threads.
struct ForkTests {
    /// The activity of other threads while the parent forks.
    enum Work: CaseIterable {
        case loops, signals, reports, children

        func run() {
            EventLoop.withLoop { loop in
                switch self {
                case .loops: for _ in 0..<20 { EventLoop.withLoop { $0.schedule(after: .zero) {}.cancel() } }
                case .signals: _ = try? loop.onSignal(SIGUSR1) {}.cancel()
                case .reports: LoopEvent.handler.withLock { _ in }
                case .children: _ = try? loop.spawn(shell("exit 0"))
                }
            }
        }
    }

    // A sanitizer cannot follow a child of many threads.
    @Test(.ownThread, .disabled(if: isSanitized)) func noLockIsHeldInTheChildOfABusyProcess() async {
        await #expect(processExitsWith: .success) {
            let isOver = Counter()
            for work in Work.allCases { work.run() }
            let threads = (Work.allCases + [.signals]).map { work in
                TestThread { while isOver.value == 0 { work.run() } }
            }
            for _ in 0..<scaled(300) {
                let hasSucceeded = isTrueInForkedChild {
                    for work in Work.allCases where work != .children { work.run() }
                    return true
                }
                precondition(hasSucceeded)
            }
            isOver.add()
            for thread in threads { thread.join() }
        }
    }

    private enum Action: CaseIterable { case standard, ignored, handler, later }

    @Test(.ownThread) func aSignalThatTheParentWatchesHasItsFormerActionThere() async {
        await #expect(processExitsWith: .success) {
            for action in Action.allCases { try Self.watchAndFork(action) }
        }
    }

    private static func watchAndFork(_ action: Action) throws {
        signal(SIGUSR1, SIG_DFL)
        if action == .ignored { signal(SIGUSR1, SIG_IGN) }
        if action == .handler { signal(SIGUSR1) { _ in _exit(43) } }
        // A thread of Swift's pool blocks it.
        try withSignals(SIG_UNBLOCK) {
            let loop = EventLoop.current
            var seen = 0
            let watch = try loop.onSignal(SIGUSR1) { seen += 1 }
            // Code unaware of the loop.
            if action == .later { signal(SIGUSR1) { _ in _exit(44) } }
            let status = statusOfForkedChild {
                raise(SIGUSR1)
                // Ignored. The child may watch it too.
                return EventLoop.withLoop { own in
                    var isSeen = false
                    let watch = try? own.onSignal(SIGUSR1) { isSeen = true }
                    raise(SIGUSR1)
                    try? own.turn(.poll)
                    watch?.cancel()
                    return isSeen ? 42 : 1
                }
            }
            let expected: [Action: CInt] = [
                .standard: SIGUSR1, .ignored: 42 << 8, .handler: 43 << 8, .later: 44 << 8,
            ]
            precondition(status == expected[action], "\(action): status \(status)")
            if action != .later {
                raise(SIGUSR1)
                try loop.turn(.poll)
                precondition(seen == 1, "\(action): \(seen)")
            }
            watch.cancel()
        }
    }

    /// Signals are blocked while a process forks, and only then.
    @Test(.ownThread) func theSignalMaskIsTheSameBeforeAndAfter() async {
        await #expect(processExitsWith: .success) {
            let isSame = {
                var present = sigset_t()
                pthread_sigmask(SIG_SETMASK, nil, &present)
                return (1..<32).allSatisfy { sigismember(&present, $0) == ($0 == SIGUSR2 ? 1 : 0) }
            }
            let isSameInBoth = EventLoop.withLoop { _ in
                withSignals(SIG_SETMASK, [SIGUSR2]) { isTrueInForkedChild(isSame) && isSame() }
            }
            precondition(isSameInBoth)
        }
    }
}
