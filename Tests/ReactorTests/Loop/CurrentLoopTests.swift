/// The current loop of each thread.
struct CurrentLoopTests {
    @Test(.inRealTime) func eachThreadHasItsLoopAndTheInnermostIsTheCurrentOne() throws {
        struct Refusal: Error {}
        let outer = EventLoop.current
        let address = ObjectIdentifier(outer)
        let isOther = TestThread.run {
            ObjectIdentifier(EventLoop.current) != address && EventLoop.current === EventLoop.current
        }
        expect(isOther && EventLoop.current === outer)
        EventLoop.withLoop { inner in
            expect(outer !== inner)
            expect(EventLoop.current === inner)
        }
        expect(EventLoop.current === outer)
        #expect(throws: Refusal.self) { try EventLoop.withLoop { _ in throw Refusal() } }
        expect(EventLoop.current === outer)
    }

    @Test func theLoopOfAThreadEndsWithItAndIsTheCurrentOneUntilThen() {
        let (tally, isSame) = (Tally(), Counter())
        let remote = TestThread.run {
            let loop = EventLoop.current
            let address = ObjectIdentifier(loop)
            let words = LastWords { if ObjectIdentifier(EventLoop.current) == address { isSame.add() } }
            loop.schedule(after: .seconds(3600), tally.bound { withExtendedLifetime(words) {} })
            return loop.remote
        }
        expectEqual(tally.alive, 0)
        expectEqual(isSame.value, 1)
        expect(!remote.submit {})
    }
}
