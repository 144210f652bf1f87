/// Embedding a loop in another event loop by its descriptor.
struct EmbeddingTests {
    private let loop = EventLoop.current

    @Test(.inRealTime) func theDescriptorShowsADueTimerAlsoIfAHandlerHasStartedIt() throws {
        var fired = 0
        func start() {
            loop.schedule(after: .milliseconds(2)) {
                fired += 1
                if fired < 3 { start() }
            }
        }
        let fd = try loop.fileDescriptor
        start()
        try loop.turn(.poll)
        expect(try #require(loop.nextDeadline) <= loop.now.advanced(by: .milliseconds(2)))
        for _ in 0..<10 where fired < 3 {
            expect(isReadable(fd, within: 20_000))
            try loop.turn(.poll)
        }
        expectEqual(fired, 3)
        expectEqual(loop.nextDeadline, nil)
        expect(!isReadable(fd))
    }

    @Test(.inRealTime) func theDescriptorShowsMailOfOtherThreads() throws {
        let remote = loop.remote
        let received = Counter()
        let fd = try loop.fileDescriptor
        for round in 1...3 {
            try loop.turn(.poll)
            expect(!isReadable(fd))
            _ = TestThread.run { remote.submit { received.add() } }
            expect(isReadable(fd))
            try loop.turn(.poll)
            expectEqual(received.value, round)
        }
    }

    @Test(.inRealTime) func aLoopIsCarriedByAnotherLoop() throws {
        let outer = EventLoop.current
        try EventLoop.withLoop { inner in
            var log: [String] = []
            let pipe = Ends.pipe()
            _ = try inner.watch(pipe.near, for: .reading) { _ in
                take(from: pipe.near)
                log.append("event")
            }
            inner.schedule(after: .milliseconds(1)) {
                log.append("timer")
                put(into: pipe.far)
            }
            inner.enqueue { log.append("job") }
            let carrier = try outer.watch(try inner.fileDescriptor, for: .reading) { _ in
                repeat { try! inner.turn(.poll) } while inner.isReady
            }
            repeat { try inner.turn(.poll) } while inner.isReady
            try outer.drive { log.count == 3 }
            expectEqual(log, ["job", "timer", "event"])
            expect(inner.metrics.turns < 100, "it spins")
            carrier.cancel()
        }
    }
}
