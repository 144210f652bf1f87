import Promises
import Reactor

@testable import PromisesTestSupport

/// Serves a connection as its first byte says: `i` waits for a further byte, `b` answers `done` after 100 ms, any other byte is
/// never answered.
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
            let client = try Peer(to: listener.localAddress)
            try client.send([kind.asciiValue!])
            return client
        }
        try loop.run(until: {
            listener.activeConnections == kinds.count && calls(.receive) - begun >= kinds.count
        })
        try loop.turn(.poll)
        return clients
    }
}
