@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

struct SystemCallCountTests {
    /// The system calls that `body` causes.
    private func calls(_ body: () throws -> Void) rethrows -> [SystemCall: Int] {
        let before = net.loop.metrics.systemCalls
        try body()
        return net.loop.metrics.systemCalls.merging(before, uniquingKeysWith: -).filter { $0.value > 0 }
    }

    /// Epoll tells whether there is an error.
    @Test(.network) func aConnectAsksForAnErrorOnlyIfThereIsOne() throws {
        let listener = try net.listen()
        let address = listener.localAddress
        let connection = try hang(connect(to: address), timeout: patience)
        expectEqual(net.calls(.getSocketOption), 0)
        connection.abort()
        listener.close()
        expectEqual(try rejection(of: connect(to: address)), ECONNREFUSED)
        expectEqual(net.calls(.getSocketOption), 1)
    }

    /// As in the echo server: an idle time-out on each connection, whichever way it reads.
    @Test(.pair(turns: 2500), arguments: [false, true]) func idleTimeoutsCostNothingWhileThereIsTraffic(chunkwise: Bool)
        throws
    {
        connection.idleTimeout = .seconds(3600)
        let served = chunkwise ? echoChunks(connection) : echo(connection)
        try net.deliver("x", from: peer)
        try net.loop.run(until: { net.calls(.send) == 1 })
        expectEqual(try peer.receive(), [0x78])
        let client = elsewhere {
            for number in 0..<1000 {
                try peer.send([UInt8(truncatingIfNeeded: number)])
                expectEqual(try peer.receive(), [UInt8(truncatingIfNeeded: number)])
            }
        }
        let calls = try calls { try net.loop.run(until: { net.calls(.send) == 1001 }) }
        // epoll_pwait, recv, send; and now and then a wait that another thread ends.
        expect(Double(calls.values.reduce(0, +)) / 1000 <= 3.2, "\(calls)")
        expect(calls[.epollControl] == nil && calls[.timerSet] == nil)
        try hang(client, timeout: patience)
        peer.end()
        try hang(served, timeout: patience)
    }

    /// The kernel reports a hang-up to every registration, so none can be narrowed to leave it out.
    @Test(.pair) func anUnwantedHangUpChangesNoRegistration() throws {
        connection.receive().cancel()
        connection.peerGone(ignoringHalfClose: true).cancel()
        let end = connection.forEachChunk { _ in }
        connection.shutdownWrite()
        try net.loop.turn(.poll)
        peer.end()
        let calls = try calls { try hang(end, timeout: patience) }
        expectEqual(calls[.epollControl], nil)
    }

    /// One wait finds the input of many connections.
    @Test(.network(turns: 2500), arguments: [false, true]) func underLoadAMessageCostsTwo(chunkwise: Bool) throws {
        let pairs = try (0..<50).map { _ in try net.pair() }
        for (connection, _) in pairs { connection.idleTimeout = .seconds(3600) }
        let served = pairs.map { chunkwise ? echoChunks($0.0) : echo($0.0) }
        try net.loop.turn(.poll)
        func exchange() throws {
            for (index, pair) in pairs.enumerated() {
                try pair.1.send("x")
                awaitArrival(of: POLLIN, at: net.ledger.accepted[index])
            }
            let sent = net.calls(.send)
            try net.loop.run(until: { net.calls(.send) == sent + pairs.count })
            for pair in pairs { expectEqual(try pair.1.receive(), [0x78]) }
        }
        try exchange()
        let calls = try calls { for _ in 0..<20 { try exchange() } }
        expect(Double(calls.values.reduce(0, +)) / 1000 <= 2.1, "\(calls)")
        expect(calls[.epollControl] == nil && calls[.timerSet] == nil)
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
        expectEqual(try calls { try net.loop.run(until: { messages == 20 }) }[.epollControl], nil)
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
        let calls = try calls {
            try hang(client, timeout: patience)
            try listener.end(served)
        }
        // accept4 twice, setsockopt, epoll_ctl twice, recv twice, send, shutdown, close, and three waits.
        expect(Double(calls.values.reduce(0, +)) / 100 <= 13.2, "\(calls)")
    }

    @Test(.network) func waitingCostsNothing() throws {
        let pairs = try (0..<20).map { _ in try net.pair() }
        let reads = pairs.map { $0.0.read() }
        try net.loop.turn(.poll)
        let calls = calls { net.settle(.milliseconds(50)) }
        // A timer's descriptor, its registration, its setting, and the wait.
        expect(calls.values.reduce(0, +) <= 6, "\(calls)")
        expect(reads.allSatisfy { $0.isPending })
    }
}

private func echoChunks(_ connection: Connection) -> Promise<Void> {
    connection.forEachChunk { connection.write($0) }
}
