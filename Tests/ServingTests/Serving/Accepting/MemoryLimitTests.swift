@testable import PromisesTestSupport

struct MemoryLimitTests {
    /// Clients that send these numbers of bytes of a frame with one byte missing, in this order. So they take little
    /// more memory than they have sent.
    private func begin(
        _ counts: [Int], limit: Int, resetting leaving: Int = 0,
        _ body: (Network, Listener, [Peer], _ errors: () -> [CInt]) throws -> Void
    ) throws {
        try withListener(turns: 4000) { net, listener in
            var errors: [CInt] = []
            var sessions: [Connection] = []
            let served = listener.serve(
                ServeOptions(memoryLimit: limit),
                onError: { error, _ in
                    if let code = (error as? SystemError)?.code, code != ECONNRESET { errors.append(code) }
                }
            ) {
                connection in
                sessions.append(connection)
                return connection.read(exactly: counts[sessions.count - 1] + 1).asVoid()
            }
            var clients: [Peer] = []
            for count in counts {
                let client = try Peer(to: listener.localAddress)
                clients.append(client)
                let sent = elsewhere { try client.send([UInt8](repeating: 0, count: count)) }
                sent.catch(policy: .allErrors) { _ in }
                let number = clients.count - 1
                try net.loop.run(until: {
                    number < sessions.count && (sessions[number].isClosed || sessions[number].bytesReceived == count)
                })
                try net.loop.turn(.poll)
                // The first ones leave when as many have arrived.
                guard number + 1 >= leaving, number + 1 < 2 * leaving else { continue }
                clients[number + 1 - leaving].reset()
                try net.loop.run(until: { listener.activeConnections == leaving - 1 })
            }
            try body(net, listener, clients) { errors }
            sessions = []
            _ = hang(listener.drain(deadline: .zero))
            try hang(served, timeout: patience)
        }
    }

    @Test func endsTheOnesThatHoldTheMost() throws {
        try begin([10_000, 600_000, 20_000, 300_000, 500_000], limit: 1_200_000) { net, listener, clients, errors in
            // The last one exceeds the limit, and holds less than the second.
            expect(listener.evictedConnections == 1 && listener.activeConnections == 4)
            expectEqual(errors(), [ENOBUFS])
            expectEqual(clients[1].failureOfReading(), ECONNRESET)
        }
    }

    @Test func leavesThoseBelowTheLimitAlone() throws {
        let counts = [300_000, 300_000, 300_000, 390_000, 390_000, 390_000]
        try begin(counts, limit: 1_200_000, resetting: 3) { net, listener, clients, errors in
            // Connections that have ended no longer count.
            expect(listener.evictedConnections == 0 && listener.activeConnections == 3 && errors().isEmpty)
        }
    }

    /// Frames that are read to their ends, and answers that are read, no longer count in the sum.
    @Test(.listener(turns: 40_000)) func whatIsReadAndSentNoLongerCounts() throws {
        let served = listener.serve(ServeOptions(memoryLimit: 200_000)) { connection in
            connection.forEachFrame(LengthPrefixDecoder<UInt32>(limit: 1 << 20)) { frame, _ in
                connection.write(frame)
            }
        }
        let clients = try (0..<3).map { _ in try Peer(to: listener.localAddress) }
        let length = withUnsafeBytes(of: UInt32(60_000).bigEndian) { Array($0) }
        let frame = length + [UInt8](repeating: 1, count: 60_000)
        for _ in 0..<20 {
            for client in clients {
                let answer = elsewhere {
                    try client.send(frame)
                    return try client.receive(exactly: 60_000).count
                }
                expectEqual(try hang(answer, timeout: patience), 60_000)
            }
        }
        expect(listener.evictedConnections == 0 && listener.activeConnections == 3)
        try listener.end(served, closing: clients)
    }

    @Test(.listener(turns: 4000)) func unsentOutputCountsAndAnAsyncHandlerIsNotifiedToo() throws {
        var errors: [CInt] = []
        let served = listener.serveAsync(
            ServeOptions(memoryLimit: 4 << 20),
            onError: { error, _ in errors.append((error as? SystemError)?.code ?? 0) }
        ) {
            connection in
            connection.writeQueueLimit = 64 << 20
            let block = [UInt8](repeating: 0, count: 1 << 20)
            for _ in 0..<64 { broadcast(block, to: [connection], overflow: .drop) }
            _ = try await firstly { endless() }.value
        }
        let client = try Peer(to: listener.localAddress, receiveBuffer: 4096)
        try net.loop.run(until: { !errors.isEmpty })
        expect(errors == [ENOBUFS] && listener.evictedConnections == 1)
        try listener.end(served, closing: [client])
    }

    /// Idle clients hold nearly as much as they may, and each frame of another client exceeds the limit until it is
    /// handled.
    @Test(.listener(turns: 45_000), .enabled(if: mayHaveDescriptors(7000)))
    func aFrameThatPassesDoesNotCostALookAtAllConnections() throws {
        let (count, frames) = (3000, 500)
        expect(descriptorLimit >= 7000)
        // An array of 100 bytes has room for 104.
        let served = listener.serve(ServeOptions(memoryLimit: 104 * count + 10_000)) { connection in
            connection.forEachFrame(LengthPrefixDecoder<UInt32>(limit: 1 << 20)) { frame, _ in
                connection.write(frame)
            }
        }
        func frame(_ count: Int) -> [UInt8] {
            withUnsafeBytes(of: UInt32(count).bigEndian) { Array($0) } + [UInt8](repeating: 0, count: count)
        }
        let busy = try Peer(to: listener.localAddress)
        /// The minimum, which other processes cannot lengthen.
        func timeOfFrame() throws -> Duration {
            try (0..<frames).map { _ in
                let began = ContinuousClock.now
                try busy.send(frame(20_000))
                let sent = net.calls(.send)
                try net.loop.run(until: { net.calls(.send) > sent })
                _ = try busy.receive(exactly: 20_000)
                return began.duration(to: .now)
            }.min()!
        }
        let alone = try timeOfFrame()
        let clients = try (0..<count).map { _ in try Peer(to: listener.localAddress) }
        for client in clients { try client.send(Array(frame(1000).prefix(100))) }
        let before = net.calls(.receive)
        try net.loop.run(until: { net.calls(.receive) == before + count && listener.activeConnections > count })
        // If each frame visited all clients, fifty times as long.
        let together = try timeOfFrame()
        expect(together < alone * 10)
        expectEqual(listener.evictedConnections, 0)
        for client in clients + [busy] { client.close() }
        _ = hang(listener.drain(deadline: .zero))
        try hang(served, timeout: patience)
    }

    @Test(.inRealTime) func eachLoopOfAGroupHasItsShare() throws {
        let group = try LoopGroup(loops: 2, name: "memory")
        let listener = try Listener.bind("127.0.0.1:0")
        let served = listener.serve(on: group, ServeOptions(memoryLimit: 2_000_000)) { connection in
            connection.read(exactly: 800_001).asVoid()
        }
        let clients = try (0..<4).map { _ in try Peer(to: listener.localAddress) }
        let sent = clients.map { client in
            elsewhere { try client.send([UInt8](repeating: 0, count: 800_000)) }
                .recover(policy: .allErrors) { _ in .value }
        }
        try hang(when(fulfilled: sent).asVoid(), timeout: patience)
        // Two of 800,000 bytes on each loop, one of which is evicted. Other threads count, which does not wake this
        // loop.
        for _ in 0..<6000 where listener.evictedConnections < 2 { hang(after(.milliseconds(10))) }
        expectEqual(listener.evictedConnections, 2)
        for client in clients { client.close() }
        _ = hang(listener.drain(deadline: .zero))
        try hang(served, timeout: patience)
        group.stop()
        group.join()
    }
}
