@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// Serves a connection as its first byte says: `i` waits for another byte, `b` answers `done` after 100 ms, any other
/// byte is never answered.
func serveByFirstByte(_ connection: Connection) -> Promise<Void> {
    connection.receive().then { bytes -> Promise<Void> in
        switch bytes.first {
        case UInt8(ascii: "i"): return connection.receive().asVoid()
        case UInt8(ascii: "b"): return after(.milliseconds(100)).then { connection.write("done") }
        default: return endless().asVoid()
        }
    }
}

extension Network {
    /// Connects a client for each character and sends the character. Returns when `listener` has read all of them.
    func connectClients(_ kinds: String, to listener: Listener) throws -> [Peer] {
        let begun = calls(.receive)
        let clients = try kinds.map { kind in
            let client = try Peer(to: listener.localAddress, sending: [kind.asciiValue!])
            return client
        }
        try loop.run(until: {
            listener.activeConnections == kinds.count && calls(.receive) - begun >= kinds.count
        })
        try loop.turn(.poll)
        return clients
    }

    /// Half-closes `client`, or calls `end`, and returns when that has arrived at the open connection: virtual time
    /// does not wait for a busy kernel.
    func end(_ client: Peer, at place: SourceLocation = #_sourceLocation, by end: (Peer) -> Void = { $0.end() }) {
        let name = client.localAddress
        let fd = ledger.accepted.first { address(of: $0, getpeername) == name }
        end(client)
        awaitArrival(of: POLLIN, at: fd ?? -1, place: place)
    }
}
