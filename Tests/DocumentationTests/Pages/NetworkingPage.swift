// Made by .ci/snippets.py from docs/guides/networking.md; do not edit.
// swift-format-ignore-file
import Promises
import Reactor

// docs/guides/networking.md: Networking
extension Snippets {
    static func networking1() throws {
    }
}

// docs/guides/networking.md: Connecting
extension Snippets {
    static func networking2() throws {
        let listener = try Listener.bind("127.0.0.1:0")
        let connecting = connect(to: listener.localAddress, timeout: .seconds(5))
        let connection = try hang(connecting)
        assert(connection.peerAddress == listener.localAddress)
        connection.close()
        _ = listener
        _ = connecting
        _ = connection
    }
}

// docs/guides/networking.md: Connecting
extension Snippets {
    static func networking3() throws {
        struct Table: NameLookup {
            let entries: [String: [String]]

            func addresses(of host: String, port: UInt16) -> Promise<[SocketAddress]> {
                .value((entries[host] ?? []).compactMap { SocketAddress(host: $0, port: port) })
            }
        }

        let listener = try Listener.bind("127.0.0.1:0")
        let table = Table(entries: ["db.internal": ["127.0.0.1"]])
        let connection = try hang(connect(to: "db.internal:\(listener.localAddress.port)", lookup: table))
        assert(connection.peerAddress == listener.localAddress)
        connection.close()
        _ = listener
        _ = table
        _ = connection
    }
}

// docs/guides/networking.md: A pool of connections
extension Snippets {
    static func networking4() throws {
        let server = try Listener.bind("127.0.0.1:0")
        let served = server.serve { connection in connection.forEachLine { connection.write($0.uppercased() + "\n") } }
        let pool = ConnectionPool(connectionsPerAddress: 2)
        func ask(_ line: String) -> Promise<String?> {
            pool.withConnection(to: server.localAddress) { connection in
                connection.write(line + "\n").then { connection.readLine() }
            }
        }
        let answers = try hang(when(fulfilled: ["a", "b", "c"].map(ask)))
        assert(answers == ["A", "B", "C"] && pool.counts.open == 2)
        assert(pool.countsByAddress[server.localAddress.description]?.idle == 2)
        let drained = hang(pool.drain(deadline: .seconds(10)))
        assert(drained.finished == 0 && pool.counts.open == 0)  // the three had finished before
        server.close()
        try hang(served)
        _ = server
        _ = served
        _ = pool
        _ = answers
        _ = drained
    }
}

// docs/guides/networking.md: Options
extension Snippets {
    static func networking5() throws {
        let listener = try Listener.bind("127.0.0.1:0", options: [.set(.keepAlive, to: true)])
        let connection = try hang(connect(to: listener.localAddress, options: [.set(.sendBuffer, to: 65_536)]))
        try connection.set(.keepAliveIdle, to: .seconds(30))
        let (idle, buffer) = (try connection.value(of: .keepAliveIdle), try connection.value(of: .sendBuffer))
        assert(idle == .seconds(30) && buffer == 131_072)      // Linux doubles it, for its own bookkeeping
        connection.close()
        _ = listener
        _ = connection
        _ = idle
        _ = buffer
    }
}
