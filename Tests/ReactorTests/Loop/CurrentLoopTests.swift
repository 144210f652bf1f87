/// The current loop of each thread.
struct CurrentLoopTests {
    @Test(.inRealTime) func aThreadHasOneLoopAndAnotherThreadHasAnother() {
        let loop = EventLoop.current
        expect(EventLoop.current === loop)
        expect(EventLoop.current === loop)
        let mine = ObjectIdentifier(loop)
        let (isOwn, isSame) = TestThread.run {
            (ObjectIdentifier(EventLoop.current) != mine, EventLoop.current === EventLoop.current)
        }
        expect(isOwn && isSame)
    }

    @Test(.inRealTime) func loopsNestAndTheOuterOneComesBack() throws {
        struct Refusal: Error {}
        let outer = EventLoop.current
        EventLoop.withLoop { inner in
            expect(outer !== inner)
            expect(EventLoop.current === inner)
        }
        expect(EventLoop.current === outer)
        #expect(throws: Refusal.self) { try EventLoop.withLoop { _ in throw Refusal() } }
        expect(EventLoop.current === outer)
    }

    @Test func theLoopOfAThreadEndsWithIt() {
        let tally = Tally()
        let remote = TestThread.run {
            let loop = EventLoop.current
            loop.schedule(after: .seconds(3600), tally.bound())
            return loop.remote
        }
        expectEqual(tally.alive, 0)
        expect(!remote.submit {})
    }

    @Test func whatIsReleasedAtTheEndOfAThreadMayAskForTheCurrentLoop() {
        let isSame = Counter()
        TestThread {
            let loop = EventLoop.current
            let address = ObjectIdentifier(loop)
            let words = LastWords { if ObjectIdentifier(EventLoop.current) == address { isSame.add() } }
            loop.schedule(after: .seconds(3600)) { withExtendedLifetime(words) {} }
        }.join()
        expectEqual(isSame.value, 1)
    }
}
