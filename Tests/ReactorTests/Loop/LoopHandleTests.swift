/// The rule of all handles: see `LoopHandle`.
struct LoopHandleTests {
    /// A handle, its callback, and whether its activity continues when the handle is released.
    enum Kind: CaseIterable {
        case timer, repeatingTimer, watch, hook, laterHook, hold

        var continuesWhenReleased: Bool { self != .hold }
    }

    /// Starts something whose closure holds `held`.
    private func make(_ kind: Kind, on loop: EventLoop, _ fd: CInt, holding held: LastWords?) throws -> any LoopHandle {
        switch kind {
        case .timer: loop.schedule(after: .seconds(1000)) { withExtendedLifetime(held) {} }
        case .repeatingTimer: loop.schedule(every: .seconds(1000)) { withExtendedLifetime(held) {} }
        case .watch: try loop.watch(fd, for: .reading) { _ in withExtendedLifetime(held) {} }
        case .hook: loop.beforeWaiting { withExtendedLifetime(held) {} }
        case .laterHook: loop.afterWaiting { withExtendedLifetime(held) {} }
        case .hold: loop.hold()
        }
    }

    @Test(.inLoop, arguments: Kind.allCases) func cancelEndsItOnceAndAReleaseOnlyIfItHasNoClosure(_ kind: Kind) throws {
        let ends = Ends.pipe()
        let loop = EventLoop.current
        var isReleased = false
        let handle = try make(kind, on: loop, ends.near, holding: LastWords { isReleased = true })
        expect(handle.isActive)
        expect(handle.cancel())
        expect(isReleased && !handle.isActive)
        expect(!handle.cancel())
        expect(!loop.isAlive)
        isReleased = false
        var other: (any LoopHandle)? = try make(
            kind, on: loop, ends.near, holding: kind.continuesWhenReleased ? LastWords { isReleased = true } : nil)
        expect(other != nil)
        other = nil
        expect(!isReleased)
        expectEqual(loop.isAlive, [.timer, .repeatingTimer, .watch].contains(kind))
    }

    @Test(arguments: Kind.allCases) func theEndOfTheLoopCancelsIt(_ kind: Kind) throws {
        let ends = Ends.pipe()
        let handle = try EventLoop.withLoop(clock: VirtualClock()) { loop throws in
            try make(kind, on: loop, ends.near, holding: nil)
        }
        expect(!handle.isActive)
        if kind.continuesWhenReleased { expect(!handle.cancel()) }
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

    @Test func aLeaseCountsUntilItIsCancelledOrReleased() throws {
        let group = try LoopGroup(loops: 1)
        let lease = group.lease()
        var other: LoopGroup.Lease? = group.lease()
        expect(group.loads == [2] && other != nil)
        other = nil
        expect(group.loads == [1] && lease.isActive)
        expect(lease.cancel() && !lease.cancel() && !lease.isActive)
        expectEqual(group.loads, [0])
        let last = group.lease()
        group.stop()
        group.join()
        expect(!last.isActive)
    }
}

extension ProcessWide {
    struct SignalHandleTests {
        @Test func aSignalWatchIsAHandleLikeTheOthers() throws {
            var isReleased = false
            let last = try EventLoop.withLoop { loop throws in
                let words = LastWords { isReleased = true }
                let watch = try loop.onSignal(SIGURG) { withExtendedLifetime(words) {} }
                expect(watch.isActive && watch.cancel() && !watch.isActive && !watch.cancel())
                return try loop.onSignal(SIGURG) {}
            }
            expect(isReleased && !last.isActive && !last.cancel())
        }
    }
}

/// A handle of a closure, used by another thread while the loop ends.
struct ForeignHandleTests {
    enum Kind: String, Codable, CaseIterable { case timer, laterTimer, watch, signal, hook }

    @Test(.ownThread, arguments: Kind.allCases) func endsTheProcessAlsoWhileTheLoopEnds(_ kind: Kind) async {
        await #expect(processExitsWith: .failure) { [kind] in
            let ends = Ends.pipe()
            try EventLoop.withLoop { loop in
                let handle: any LoopHandle =
                    switch kind {
                    case .timer: loop.schedule(after: .seconds(1)) {}
                    case .laterTimer: loop.schedule(at: loop.now + .seconds(1)) {}
                    case .watch: try loop.watch(ends.near, for: .reading) { _ in }
                    case .signal: try loop.onSignal(SIGURG) {}
                    case .hook: loop.beforeWaiting {}
                    }
                nonisolated(unsafe) let shared = handle
                let words = LastWords { TestThread { shared.cancel() }.join() }
                loop.enqueue { words.use() }
            }
        }
    }

    @Test func doesNothingOnceTheLoopHasEnded() throws {
        let ends = Ends.pipe()
        nonisolated(unsafe) let handles: [any LoopHandle] = try EventLoop.withLoop { loop in
            [
                loop.schedule(after: .seconds(1)) {}, try loop.watch(ends.near, for: .reading) { _ in },
                loop.beforeWaiting {},
            ]
        }
        expect(TestThread.run { handles.allSatisfy { !$0.isActive && !$0.cancel() } })
    }
}
