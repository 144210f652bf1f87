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

// docs/guides/networking.md: A pool of resources
extension Snippets {
    static func networking4() throws {
        let server = try Listener.bind("127.0.0.1:0")
        let served = server.serve { connection in connection.forEachLine { connection.write($0.uppercased() + "\n") } }
        let pool = Pool<Connection>(to: .address(server.localAddress), limits: PoolLimits(perKey: 2))
        func ask(_ line: String) -> Promise<String?> {
            pool.with { connection in connection.write(line + "\n").then { connection.readLine() } }
        }
        let answers = try hang(when(fulfilled: ["a", "b", "c"].map(ask)))
        assert(answers == ["A", "B", "C"] && pool.counts.open == 2 && pool.counts.idle == 2)
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

// docs/guides/networking.md: A pool of resources
extension Snippets {
    static func networking5() throws {
        struct Refused: Error { let answer: String }      // an answer like any other: the session can go on
        struct Gone: Error {}

        final class Session {
            private let connection: Connection
            private(set) var statements = 0               // need not be Sendable: it stays on this thread

            init(_ connection: Connection) { self.connection = connection }

            nonisolated(nonsending) func query(_ text: String) async throws -> String {
                statements += 1
                try await connection.write(text + "\n").value
                guard let answer = try await connection.readLine().value else { throw Gone() }
                if answer.hasPrefix("refused") { throw Refused(answer: answer) }
                return answer
            }

            nonisolated(nonsending) func transaction<Value>(
                _ body: nonisolated(nonsending) (Session) async throws -> Value
            ) async throws -> Value {
                _ = try await query("BEGIN")
                do {
                    let value = try await body(self)
                    _ = try await query("COMMIT")
                    return value
                } catch {
                    if error is Refused { _ = try await query("ROLLBACK") }
                    throw error
                }
            }
        }

        let server = try Listener.bind("127.0.0.1:0")
        var log: [String] = []
        var names: Set<String> = []
        let served = server.serve { connection in
            connection.forEachLine { line in
                log.append(line)
                let isTwice = line.hasPrefix("INSERT") && !names.insert(line).inserted
                return connection.write(isTwice ? "refused: unique\n" : "ok\n")
            }
        }
        let sessions = Pool(
            to: .address(server.localAddress), limits: PoolLimits(perKey: 1), keepsAfter: { $0 is Refused },
            prepare: { connection, _ in connection.write("LOGIN\n").then { connection.readLine() }.map { _ in Session(connection) } })
        func add(_ name: String) -> Promise<String> {
            Promise(on: .current) {
                try await sessions.with { session in
                    try await session.transaction { try await $0.query("INSERT \(name)") }
                }
            }
        }
        let results = hang(when(resolved: [add("a"), add("a")])).map { try? $0.get() }
        assert(results == ["ok", nil])
        assert(log == ["LOGIN", "BEGIN", "INSERT a", "COMMIT", "BEGIN", "INSERT a", "ROLLBACK"])     // one session for both
        sessions.close()
        server.close()
        try hang(served)
        _ = server
        _ = log
        _ = names
        _ = served
        _ = sessions
        _ = results
    }
}

// docs/guides/networking.md: Options
extension Snippets {
    static func networking6() throws {
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
