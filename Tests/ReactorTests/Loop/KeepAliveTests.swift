/// Everything that keeps a loop alive, each counted once.
struct KeepAliveTests {
    private let loop = EventLoop.current

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
}
