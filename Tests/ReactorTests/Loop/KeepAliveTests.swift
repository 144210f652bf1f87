/// Everything that keeps a loop alive, each counted once.
struct KeepAliveTests {
    private let loop = EventLoop.current
    private var clock: VirtualClock { loop.virtualClock }

    @Test(.inRealTime) func aFreshLoopIsNotAlive() {
        expect(!loop.isAlive && !loop.isReady)
        expectEqual(loop.nextDeadline, nil)
    }

    @Test(.inRealTime) func aJobKeepsItAliveUntilItHasRun() throws {
        loop.enqueue {}
        expect(loop.isAlive && loop.isReady)
        try loop.turn(.poll)
        expect(!loop.isAlive && !loop.isReady)
    }

    @Test(.inLoop) func aTimerKeepsItAliveUntilItFiresOrIsCancelled() throws {
        loop.schedule(after: .seconds(1)) {}
        expect(loop.isAlive && !loop.isReady)
        try loop.turn(.wait)
        expect(!loop.isAlive)
        let timer = loop.schedule(every: .seconds(1)) {}
        try loop.turn(.wait)
        expect(loop.isAlive, "a repeating one goes on")
        timer.cancel()
        expect(!loop.isAlive)
    }

    @Test(.inLoop) func referencesOfATimerAreNotCountedTwice() {
        let timer = loop.schedule(after: .seconds(1)) {}
        timer.ref()
        timer.unref()
        expect(!loop.isAlive)
        timer.unref()
        timer.ref()
        expect(loop.isAlive)
        timer.unref()
        timer.cancel()
        timer.ref()
        expect(!loop.isAlive)
        loop.schedule(after: .seconds(1)) {}
        expect(loop.isAlive, "the successor in its place begins referenced")
    }

    @Test(.inLoop) func anUnreferencedRepeatingTimerStaysSo() throws {
        var ticks = 0
        let timer = loop.schedule(every: .seconds(1)) { ticks += 1 }
        timer.unref()
        loop.schedule(after: .milliseconds(3500)) {}
        try loop.run()
        expectEqual(ticks, 3)
        expect(timer.isActive && !loop.isAlive)
        timer.reschedule(at: loop.now)
        expect(!loop.isAlive, "moving it does not reference it")
    }

    @Test(.inLoop) func aWatchKeepsItAliveUntilItIsCancelled() throws {
        let sockets = Ends.sockets()
        let reading = try loop.watch(sockets.near, for: .reading) { _ in }
        let writing = try loop.watch(sockets.near, for: .writing) { _ in }
        expect(loop.isAlive)
        reading.cancel()
        expect(loop.isAlive)
        writing.cancel()
        expect(!loop.isAlive)
        writing.cancel()
        expect(!loop.isAlive)
    }

    @Test(.inLoop) func referencesOfAWatchAreNotCountedTwice() throws {
        let pipe = Ends.pipe()
        let watch = try loop.watch(pipe.near, for: .reading) { _ in }
        watch.unref()
        watch.unref()
        expect(!loop.isAlive)
        watch.ref()
        watch.ref()
        expect(loop.isAlive)
        watch.unref()
        try loop.run()
        watch.cancel()
        watch.ref()
        expect(!loop.isAlive)
        _ = try loop.watch(pipe.near, for: .reading) { _ in }
        watch.unref()
        expect(loop.isAlive, "the handle of the dead has no say over its successor")
    }

    @Test(.inLoop) func anUnreferencedWatchStillHearsWhileSomethingElseKeepsTheLoop() throws {
        let pipe = Ends.pipe()
        var reads = 0
        let watch = try loop.watch(pipe.near, for: .reading) { _ in
            take(from: pipe.near)
            reads += 1
        }
        watch.unref()
        loop.schedule(after: .seconds(1)) { put(into: pipe.far) }
        loop.schedule(after: .seconds(2)) {}
        try loop.run()
        expectEqual(reads, 1)
    }

    @Test(.inLoop) func aHoldKeepsItAliveUntilItIsReleasedOnce() throws {
        let first = loop.hold()
        let second = loop.hold()
        first.cancel()
        first.cancel()
        expect(loop.isAlive)
        loop.schedule(after: .seconds(1)) { second.cancel() }
        try loop.run()
        expect(!loop.isAlive)
    }

    @Test(.inRealTime) func aHoldWithoutAReferenceIsReleased() {
        var hold: EventLoop.Hold? = loop.hold()
        expect(withExtendedLifetime(hold) { loop.isAlive })
        hold = nil
        expect(!loop.isAlive)
    }

    @Test(.inRealTime) func mailKeepsItAlive() throws {
        let remote = loop.remote
        let received = Counter()
        _ = TestThread.run { remote.submit { received.add() } }
        expect(loop.isAlive && loop.isReady)
        try loop.run()
        expectEqual(received.value, 1)
        expect(!loop.isAlive)
    }
}
