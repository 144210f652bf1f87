@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

struct RefusedClientsTests {
    @Test(.listener(turns: 4000)) func thoseBeyondTheLimitGetAnAnswerAndTheEnd() throws {
        var served = 0
        let done = listener.serve(ServeOptions(maxConnections: 2, overflow: .refuse("busy\n"))) { connection in
            served += 1
            return echo(connection)
        }
        let clients = try (0..<5).map { _ in try Peer(to: listener.localAddress) }
        // An unread request does not turn the answer into a reset.
        for client in clients { try client.send("hello") }
        for client in clients[2...] {
            expectEqual(try hang(elsewhere { try client.readToEnd() }, timeout: patience), Array("busy\n".utf8))
        }
        expect(served == 2 && listener.activeConnections == 2 && listener.refusedConnections == 3)
        clients[0].end()
        expectEqual(try hang(elsewhere { try clients[0].readToEnd() }, timeout: patience), Array("hello".utf8))
        try net.loop.run(until: { listener.activeConnections == 1 })
        let next = try Peer(to: listener.localAddress, sending: "hello")
        expectEqual(try hang(elsewhere { try next.receive(exactly: 5) }, timeout: patience), Array("hello".utf8))
        expect(served == 3 && listener.refusedConnections == 3)
        for client in clients + [next] { client.close() }
        listener.close()
        try hang(done, timeout: patience)
    }

    /// Clients that keep their connections are closed when there are too many; at the end of a drain, all are.
    @Test(.listener(turns: 4000)) func theyDoNotKeepDescriptors() throws {
        let options = ServeOptions(maxConnections: 1, overflow: .refuse([]), maxLingering: 2)
        let done = listener.serve(options) { connection in connection.receive().asVoid() }
        let clients = try (0..<8).map { _ in try Peer(to: listener.localAddress) }
        try net.loop.run(until: { listener.refusedConnections == 7 })
        expectEqual(net.ledger.open.intersection(net.ledger.accepted).count, 3)
        for client in clients[1...] { expectEqual(try client.readToEnd(), []) }
        clients[0].end()
        hang(listener.drain(deadline: .seconds(10)))
        try hang(done, timeout: patience)
        expectEqual(net.ledger.open.intersection(net.ledger.accepted).count, 0)
    }

    /// The backlog that a drain accepts is refused as far as it exceeds the limit.
    @Test(.listener(turns: 4000)) func inTheBacklogOfADrain() throws {
        let done = listener.serve(ServeOptions(maxConnections: 1, overflow: .refuse("busy"))) { echo($0) }
        let clients = try (0..<3).map { _ in try Peer(to: listener.localAddress) }
        let drained = listener.drain(deadline: .seconds(30))
        expectEqual(listener.refusedConnections, 2)
        for client in clients[1...] {
            expectEqual(try hang(elsewhere { try client.readToEnd() }, timeout: patience), Array("busy".utf8))
        }
        clients[0].close()
        expectEqual(hang(drained).aborted, 0)
        try hang(done, timeout: patience)
    }
}
