@testable import PromisesTestSupport

struct ConnectionLimitTests {
    @Test(arguments: [1, 3]) func thoseBeyondTheLimitWaitAndComeOneByOne(limit: Int) throws {
        try withListener { net, listener in
            var peak = 0
            let served = listener.serve(ServeOptions(maxConnections: limit)) { connection -> Promise<Void> in
                peak = max(peak, listener.activeConnections)
                return echo(connection)
            }
            // For TCP all eight are connected, and have sent.
            let clients = try (0..<8).map { number in
                let client = try Peer(to: listener.localAddress, sending: [UInt8(number)])
                return client
            }
            try net.loop.run(until: { listener.activeConnections == limit })
            expect(net.turns { net.settle() } <= 10, "a listener that is full spins")
            expectEqual(net.calls(.accept), limit)

            for (number, client) in clients.enumerated() {
                client.end()
                expectEqual(try hang(elsewhere { try client.readToEnd() }, timeout: patience), [UInt8(number)])
                try net.loop.run(until: { net.ledger.accepted.count == min(number + limit + 1, 8) })
                expect(listener.activeConnections <= limit)
            }
            expectEqual(peak, limit)
            try listener.end(served)
        }
    }
}
