/// The rule of all handles: see `LoopHandle`.
struct LoopHandleTests {
    enum Kind: CaseIterable {
        case timer, repeatingTimer, watch, signal, hook, laterHook, hold

        /// Whether its activity continues when the handle is released.
        var continuesWhenReleased: Bool { self != .hold }

        /// Starts something whose closure holds `held`.
        func make(on loop: EventLoop, _ fd: CInt, holding held: LastWords? = nil) throws -> any LoopHandle {
            switch self {
            case .timer: loop.schedule(after: .seconds(1000)) { withExtendedLifetime(held) {} }
            case .repeatingTimer: loop.schedule(every: .seconds(1000)) { withExtendedLifetime(held) {} }
            case .watch: try loop.watch(fd, for: .reading) { _ in withExtendedLifetime(held) {} }
            // Nobody else watches it, and by default it is ignored.
            case .signal: try loop.onSignal(SIGURG) { withExtendedLifetime(held) {} }
            case .hook: loop.beforeWaiting { withExtendedLifetime(held) {} }
            case .laterHook: loop.afterWaiting { withExtendedLifetime(held) {} }
            case .hold: loop.hold()
            }
        }
    }

    @Test(.inLoop, arguments: Kind.allCases) func cancelEndsItOnceAndAReleaseOnlyIfItHasNoClosure(_ kind: Kind) throws {
        let ends = Ends.pipe()
        let loop = EventLoop.current
        var isReleased = false
        let handle = try kind.make(on: loop, ends.near, holding: LastWords { isReleased = true })
        expect(handle.isActive)
        expect(handle.cancel())
        expect(isReleased && !handle.isActive)
        expect(!handle.cancel())
        expect(!loop.isAlive)
        isReleased = false
        var other: (any LoopHandle)? = try kind.make(
            on: loop, ends.near, holding: kind.continuesWhenReleased ? LastWords { isReleased = true } : nil)
        expect(other != nil)
        other = nil
        expect(!isReleased)
        expectEqual(loop.isAlive, [.timer, .repeatingTimer, .watch, .signal].contains(kind))
    }

    @Test(arguments: Kind.allCases) func theEndOfTheLoopCancelsIt(_ kind: Kind) throws {
        let ends = Ends.pipe()
        nonisolated(unsafe) let handle = try EventLoop.withLoop(clock: VirtualClock()) { loop throws in
            try kind.make(on: loop, ends.near)
        }
        let hasEnded = { @Sendable in !handle.isActive && !(kind.continuesWhenReleased && handle.cancel()) }
        expect(hasEnded())
        expect(TestThread.run(hasEnded), "on another thread")
    }

    @Test(.ownThread) func itsUseOnAnotherThreadEndsTheProcessAlsoWhileTheLoopEnds() async {
        await #expect(processExitsWith: .failure) { try Self.useElsewhere(.timer) }
        await #expect(processExitsWith: .failure) { try Self.useElsewhere(.watch) }
        await #expect(processExitsWith: .failure) { try Self.useElsewhere(.signal) }
        await #expect(processExitsWith: .failure) { try Self.useElsewhere(.hook) }
    }

    private static func useElsewhere(_ kind: Kind) throws {
        let ends = Ends.pipe()
        try EventLoop.withLoop { loop in
            nonisolated(unsafe) let handle = try kind.make(on: loop, ends.near)
            let words = LastWords { TestThread { handle.cancel() }.join() }
            loop.enqueue { words.use() }
        }
    }

    @Test(.inRealTime) func aTimerThatHasFiredAndAWatchWhoseDescriptorWasClosedHaveEnded() throws {
        let ends = Ends.sockets()
        let loop = EventLoop.current
        let timer = loop.schedule(after: .zero) {}
        try loop.turn(.poll)
        expect(!timer.isActive && !timer.cancel())
        let watch = try loop.watch(ends.near, for: .reading) { _ in }
        let copy = dup(ends.near)
        defer { close(copy) }
        let number = ends.near
        // Closes the descriptor and reuses its number atomically, so that no other thread can take it. Watching the
        // number again shows that the first watch is stale.
        expectEqual(dup2(ends.far, number), number)
        let again = try loop.watch(number, for: .writing) { _ in }
        expect(!watch.isActive && again.isActive && !watch.cancel() && again.cancel())
    }
}
