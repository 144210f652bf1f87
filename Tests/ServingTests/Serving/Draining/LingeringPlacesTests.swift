@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// Connections that the server has finished but their peers have not: they take no place of `maxConnections`.
struct LingeringPlacesTests {
    /// A client that has seen the server's end and keeps its own side open.
    private func lingerer(_ listener: Listener) throws -> Peer {
        let client = try Peer(to: listener.localAddress)
        expectEqual(try hang(elsewhere { try client.receive() }, timeout: patience), [])
        return client
    }

    @Sendable private static func end(_ connection: Connection) -> Promise<Void> {
        connection.close(linger: .seconds(1000))
        return .value
    }

    @Test(.listener) func aConnectionThatLingersGivesUpItsPlace() throws {
        let served = listener.serve(ServeOptions(maxConnections: 1)) { Self.end($0) }
        let clients = try (0..<3).map { _ in try lingerer(listener) }
        expect(listener.activeConnections == 0 && listener.lingeringConnections == 3)
        listener.close()
        expect(served.isPending)
        for client in clients { client.close() }
        try hang(served, timeout: patience)
        expectEqual(listener.lingeringConnections, 0)
    }

    @Test(.listener) func beyondTheBoundTheOneThatHasLingeredLongestIsClosed() throws {
        let served = listener.serve(ServeOptions(maxConnections: 1, maxLingering: 2)) { Self.end($0) }
        let clients = try (0..<2).map { _ in try lingerer(listener) }
        expectEqual(net.ledger.acceptedAreOpen, [true, true])
        let third = try lingerer(listener)
        try net.loop.run(until: { net.ledger.acceptedAreOpen == [false, true, true] })
        // One in the middle ends by itself; the next to be closed is again the oldest.
        clients[1].close()
        try net.loop.run(until: { listener.lingeringConnections == 1 })
        let others = try (0..<2).map { _ in try lingerer(listener) }
        try net.loop.run(until: { net.ledger.acceptedAreOpen == [false, false, false, true, true] })
        expectEqual(listener.lingeringConnections, 2)
        listener.close()
        for client in clients + [third] + others { client.close() }
        try hang(served, timeout: patience)
    }

    @Test(.group(2)) func onAGroupEachLoopHasItsShareOfTheBound() throws {
        let served = listener.serve(
            on: loops, ServeOptions(maxConnections: 1, maxLingering: 4, balancing: .roundRobin)
        ) {
            Self.end($0)
        }
        let clients = try (0..<10).map { _ in try lingerer(listener) }
        spin { listener.lingeringConnections == 4 && listener.activeConnections == 0 }
        listener.close()
        for client in clients { client.close() }
        try hang(served, timeout: patience)
    }

    @Test(.listener) func aBoundOfNoneLeavesNothingBehind() throws {
        let served = listener.serve(ServeOptions(maxLingering: 0)) { connection in connection.write("answer") }
        let client = try Peer(to: listener.localAddress)
        expectEqual(try hang(elsewhere { try client.readToEnd() }, timeout: patience), Array("answer".utf8))
        try net.loop.run(until: { listener.lingeringConnections == 0 })
        try listener.end(served)
    }

    /// An orderly end has its own deadline.
    @Test(.listener(.virtual)) func whileItIsDrainedTheBoundDoesNotCount() throws {
        let served = listener.serve(ServeOptions(maxLingering: 1)) { echo($0) }
        let clients = try (0..<3).map { _ in try Peer(to: listener.localAddress) }
        try net.loop.run(until: { listener.activeConnections == 3 })
        let drained = listener.drain(deadline: .seconds(2))
        net.settle(.milliseconds(250))
        expect(listener.activeConnections == 0 && listener.lingeringConnections == 3)
        expectEqual(hang(drained).idle, 3)
        for client in clients { client.close() }
        try hang(served)
    }
}
