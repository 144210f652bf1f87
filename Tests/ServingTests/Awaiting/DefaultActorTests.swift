@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// An actor without its own executor.
private actor Stranger {
    private(set) var visits = 0

    /// True if a handler that this method attached would belong to `home`.
    func attachesHandlers(to home: LoopRemote) -> Bool {
        visits += 1
        return EventLoop.current.remote == home
    }

    func visit() { visits += 1 }

    /// Gives another thread ample time to act meanwhile.
    func visitAtLength() {
        for _ in 0..<1000 { sched_yield() }
        visits += 1
    }
}

/// Actors without their own executor, which Swift runs where the calling task prefers to run.
@Suite(.ownThread) struct DefaultActorTests {
    enum Caller: CaseIterable { case asyncHandler, body, task }

    /// A handler attached there would be isolated to the actor, and be called while the actor runs elsewhere.
    @Test(.network, arguments: Caller.allCases) func noneRunsOnTheLoopOfItsCaller(caller: Caller) throws {
        let stranger = Stranger()
        let home = net.loop.remote
        let places = Shared<[String]>([])
        @Sendable func call() async {
            for _ in 0..<3 {
                let attaches = await stranger.attachesHandlers(to: home)
                let isBack = isCurrent(home)
                places.change { $0.append("\(attaches) \(isBack)") }
            }
        }
        switch caller {
        case .asyncHandler:
            let listener = try net.listen()
            let served = listener.serveAsync { _ in
                await call()
                listener.close()
            }
            let client = try Peer(to: listener.localAddress)
            client.end()
            try hang(served, timeout: patience)
            client.close()
        case .body:
            try net.loop.run { await call() }
        case .task:
            let hold = net.loop.hold()
            Task(executorPreference: home) {
                await call()
                hold.cancel()
            }
            try net.loop.run()
        }
        expectEqual(places.value, Array(repeating: "false true", count: 3))
    }

    @Test(.group(1)) func aLoopThatStandsStillHoldsUpNone() throws {
        let (stranger, home) = (Stranger(), loops[0])
        let (called, release) = (Gate(), Gate())
        defer { release.open() }
        home.submit {
            Task.immediateDetached(executorPreference: home) { await stranger.visit() }
            called.open()
            release.wait()
        }
        called.wait()
        let visits = try hang(Promise { await stranger.visits }, timeout: patience)
        expect(visits <= 1)
    }

    @Test(.inLoop) func aLoopWithAVirtualClockWaitsForThem() throws {
        let loop = EventLoop.current
        let stranger = Stranger()
        var hasFired = false
        after(.seconds(3600)).done { hasFired = true }
        try loop.run { for _ in 0..<10 { await stranger.visitAtLength() } }
        expect(!hasFired)
    }
}
