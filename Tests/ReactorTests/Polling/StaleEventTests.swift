/// Events fetched for a watch that ends before they are delivered.
struct StaleEventTests {
    private let loop = EventLoop.current

    @Test(.inLoop) func aHandlerThatClosesItsOwnDescriptorHearsNoMoreOfTheDataLeftInIt() throws {
        let sockets = Ends.sockets()
        var calls = 0
        var reader: EventLoop.Watch?
        var writer: EventLoop.Watch?
        reader = try loop.watch(sockets.near, for: .reading) { _ in
            calls += 1
            take(1, from: sockets.near)
            reader?.cancel()
            writer?.cancel()
            sockets.closeNear()
        }
        writer = try loop.watch(sockets.near, for: .writing) { _ in Issue.record("cancelled before its turn") }
        put(10, into: sockets.far)
        for _ in 0..<3 { try loop.turn(.poll) }
        expectEqual(calls, 1)
        expectEqual(loop.metrics.events, 1)
        expect(!loop.isAlive)
    }

    @Test(.inLoop) func aDescriptorClosedInTheSameBatchLeavesNoEventToTheOneThatTakesItsNumber() throws {
        let (first, second, third) = (Ends.sockets(), Ends.sockets(), Ends.sockets())
        let number = second.near
        var log: [String] = []
        var old: EventLoop.Watch?
        var new: EventLoop.Watch?
        _ = try loop.watch(first.near, for: .reading) { _ in
            take(from: first.near)
            log.append("first")
            old?.cancel()
            // Closes the second and gives its number to the third atomically, so that no other thread can take it.
            dup2(third.near, number)
            new = try! loop.watch(number, for: .reading) { _ in
                log.append("third reads \(take(from: number))")
            }
        }
        old = try loop.watch(number, for: .reading) { _ in log.append("second") }
        put(into: first.far)
        put(into: second.far)
        try loop.turn(.poll)
        expectEqual(loop.metrics.events, 2, "both were in one batch")
        expectEqual(log, ["first"])
        try loop.turn(.poll)
        expectEqual(log, ["first"])
        put(3, into: third.far)
        try loop.turn(.poll)
        expectEqual(log, ["first", "third reads 3"])
        new?.cancel()
    }

    @Test(.inLoop) func aHandlerMayCancelAllWatchesOfTheBatch() throws {
        let pipes = (0..<50).map { _ in Ends.pipe() }
        var watches: [EventLoop.Watch] = []
        var calls = 0
        for pipe in pipes {
            watches.append(
                try loop.watch(pipe.near, for: .reading) { _ in
                    calls += 1
                    for watch in watches { watch.cancel() }
                    for pipe in pipes { pipe.closeNear() }
                })
            put(into: pipe.far)
        }
        try loop.run()
        expectEqual(calls, 1)
        expectEqual(loop.metrics.events, 50)
        expectEqual(loop.metrics.turns, 1)
    }
}
