@testable import PromisesTestSupport

/// The threads of closures that are not handlers.
struct ThreadAffinityTests {
    /// A non-Sendable value must not be touched by the thread that settles another one.
    @Test func whenPutsItsTupleTogetherOnTheThreadThatAskedForIt() throws {
        final class Box { var count = 0 }
        let home = pthread_self()
        let (promise, resolver) = Promise<Int>.pending()
        let both = when(fulfilled: Promise.value(Box()), promise)
        let isHome = Shared(false)
        both.pipe { _ in isHome.change { $0 = pthread_equal(home, pthread_self()) != 0 } }
        let thread = TestThread { resolver.fulfill(1) }
        thread.join()
        expectEqual(try hang(both.map { $0.1 }, timeout: patience), 1)
        expect(isHome.value)
    }

    /// An inline handler hangs on a promise that a handler queued after it fulfills.
    @Test(.inLoop) func whatWaitsBehindAnInlineHandlerIsWork() {
        let loop = EventLoop.current
        let (start, startResolver) = Promise<Void>.pending()
        let (end, endResolver) = Promise<Int>.pending()
        let (second, secondResolver) = Promise<Void>.pending()
        let seen = Shared<Int?>(nil)
        start.pipe { _ in
            // Queued on the trampoline after this very handler.
            secondResolver.fulfill()
            let value = try? hang(end, timeout: .seconds(3600))
            seen.change { $0 = value }
        }
        second.pipe { _ in endResolver.fulfill(7) }
        let before = loop.now
        startResolver.fulfill()
        expectEqual(seen.value, 7)
        expectEqual(loop.now, before, "it slept")
    }

    @Test(.inRealTime) func driftingIntoTheOuterLoopKeepsTheAccountsOfBoth() throws {
        let outer = EventLoop.current
        var ran = false
        Promise.value(1).done { _ in ran = true }.catch { _ in }
        try EventLoop.withLoop { _ in try outer.run() }
        expect(ran)
        expectEqual(outer.waitingHandlers, 0)
    }
}
