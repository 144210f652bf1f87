@testable import PromisesTestSupport

struct SystemCallCountTests {
    private func total(_ net: Network) -> Int { net.loop.metrics.systemCalls.values.reduce(0, +) }

    /// As in the echo server: an idle time-out on each connection, whichever way it reads.
    @Test(.pair(turns: 2500), arguments: [false, true]) func idleTimeoutsCostNothingWhileThereIsTraffic(chunkwise: Bool)
        throws
    {
        connection.idleTimeout = .seconds(3600)
        let served = chunkwise ? echoChunks(connection) : echo(connection)
        try net.deliver("x", from: peer)
        try net.loop.run(until: { net.calls(.send) == 1 })
        expectEqual(try peer.receive(), [0x78])
        let before = Economy(net)
        let client = elsewhere {
            for number in 0..<1000 {
                try peer.send([UInt8(truncatingIfNeeded: number)])
                expectEqual(try peer.receive(), [UInt8(truncatingIfNeeded: number)])
            }
        }
        try net.loop.run(until: { net.calls(.send) == 1001 })
        let cost = Economy(net) - before
        // epoll_pwait, recv, send; and now and then a wait that another thread ends.
        expect(Double(cost.total) / 1000 <= 3.2)
        expect(cost.registrations == 0 && cost.timerSettings == 0)
        try hang(client, timeout: patience)
        peer.end()
        try hang(served, timeout: patience)
    }

    /// One wait finds the input of many connections.
    @Test(.network(turns: 2500), arguments: [false, true]) func underLoadAMessageCostsTwo(chunkwise: Bool) throws {
        let pairs = try (0..<50).map { _ in try net.pair() }
        for (connection, _) in pairs { connection.idleTimeout = .seconds(3600) }
        let served = pairs.map { chunkwise ? echoChunks($0.0) : echo($0.0) }
        try net.loop.turn(.poll)
        let rounds = 20
        var before = Economy(net)
        for round in 0...rounds {
            if round == 1 { before = Economy(net) }
            for (index, pair) in pairs.enumerated() {
                try pair.1.send("x")
                awaitArrival(of: POLLIN, at: net.ledger.accepted[index])
            }
            try net.loop.run(until: { net.calls(.send) == (round + 1) * pairs.count })
            for pair in pairs { expectEqual(try pair.1.receive(), [0x78]) }
        }
        let cost = Economy(net) - before
        expect(Double(cost.total) / Double(rounds * pairs.count) <= 2.1)
        expectEqual(cost.timerSettings, 0)
        expectEqual(cost.registrations, 0)
        for pair in pairs { pair.1.end() }
        try hang(when(fulfilled: served), timeout: patience)
    }

    /// The loop polls between the jobs of a batch, and the next read is in one that has not run yet.
    @Test(.pair(turns: 2500)) func anEventBeforeTheNextReadCostsNoRegistration() throws {
        var messages = 0
        try peer.send("x")
        func next() {
            connection.read().done { _ in
                messages += 1
                try net.deliver("x", from: peer)
                for _ in 0..<3000 { net.loop.enqueue {} }
                net.loop.enqueue(next)
            }.cauterize()
        }
        next()
        try net.loop.run(until: { messages == 2 })
        let before = Economy(net)
        try net.loop.run(until: { messages == 20 })
        expectEqual((Economy(net) - before).registrations, 0)
    }

    @Test(.listener(turns: 2500)) func aConnectionsWholeLifeCostsTen() throws {
        let address = listener.localAddress
        let served = listener.serve { echo($0) }
        let client = elsewhere {
            for _ in 0..<100 {
                let peer = try Peer(to: address, sending: "x")
                expectEqual(try peer.receive(), [0x78])
                peer.end()
                expectEqual(try peer.receive(), [])
            }
        }
        let before = total(net)
        try hang(client, timeout: patience)
        try listener.end(served)
        // accept4 twice, setsockopt, epoll_ctl twice, recv twice, send, shutdown, close, and three waits.
        expect(Double(total(net) - before) / 100 <= 13.2)
    }

    @Test(.network) func waitingCostsNothing() throws {
        let pairs = try (0..<20).map { _ in try net.pair() }
        let reads = pairs.map { $0.0.read() }
        try net.loop.turn(.poll)
        let before = total(net)
        net.settle(.milliseconds(50))
        // A timer's descriptor, its registration, its setting, and the wait.
        expect(total(net) - before <= 6)
        expect(reads.allSatisfy { $0.isPending })
    }
}

private struct Economy {
    var total, registrations, timerSettings: Int

    init(_ net: Network) {
        total = net.loop.metrics.systemCalls.values.reduce(0, +)
        registrations = net.calls(.epollControl)
        timerSettings = net.calls(.timerSet)
    }

    static func - (later: Self, earlier: Self) -> Self {
        var difference = later
        difference.total -= earlier.total
        difference.registrations -= earlier.registrations
        difference.timerSettings -= earlier.timerSettings
        return difference
    }
}

private func echoChunks(_ connection: Connection) -> Promise<Void> {
    connection.forEachChunk { connection.write($0) }
}
