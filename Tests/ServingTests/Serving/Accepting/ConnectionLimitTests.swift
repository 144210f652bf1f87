import Glibc
import Promises
import Reactor
import TestSupport
import Testing

@testable import PromisesTestSupport

@Suite struct ConnectionLimitTests {
    @Test func thoseBeyondTheLimitWaitAndComeOneByOne() throws {
        try withListener { net, listener in
            var peak = 0
            let served = listener.serve(ServeOptions(maxConnections: 3)) { connection -> Promise<Void> in
                peak = max(peak, listener.activeConnections)
                return echo(connection)
            }
            // For TCP all eight are connected, and have sent.
            let clients = try (0..<8).map { number in
                let client = try Peer(to: listener.localAddress)
                try client.send([UInt8(number)])
                return client
            }
            try net.loop.run(until: { listener.activeConnections == 3 })
            expect(net.turns { net.settle() } <= 10, "a listener that is full spins")
            expectEqual(net.calls(.accept), 3)

            for (number, client) in clients.enumerated() {
                client.end()
                let reply = elsewhere { try client.readToEnd() }
                expectEqual(try hang(reply, timeout: patience), [UInt8(number)])
                try net.loop.run(until: { net.ledger.accepted.count == min(number + 4, 8) })
                expect(listener.activeConnections <= 3)
            }
            expectEqual(peak, 3)
            listener.close()
            try hang(served, timeout: patience)
        }
    }

    @Test func aLimitOfOneServesOneAfterTheOther() throws {
        try withListener { _, listener in
            var running = 0
            let served = listener.serve(ServeOptions(maxConnections: 1)) { connection -> Promise<Void> in
                running += 1
                expectEqual(running, 1)
                return echo(connection).ensure { running -= 1 }
            }
            let clients = try (0..<20).map { number in
                let client = try Peer(to: listener.localAddress)
                try client.send([UInt8(number)])
                client.end()
                return client
            }
            let replies = elsewhere { try clients.map { try $0.readToEnd() } }
            expectEqual(try hang(replies, timeout: patience), (0..<20).map { [$0] })
            listener.close()
            try hang(served, timeout: patience)
        }
    }
}
