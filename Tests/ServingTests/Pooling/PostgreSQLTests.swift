@testable import PromisesTestSupport

/// A pool of sessions with PostgreSQL's own server, if Debian's package is installed: the server is started in a new
/// folder, with a socket there and no port.
struct PostgreSQLTests {
    private static let programs = "/usr/lib/postgresql/15/bin"
    private static var isInstalled: Bool { access("\(programs)/initdb", X_OK) == 0 }

    private struct MessageDecoder: FrameDecoder {
        func decode(_ bytes: RawSpan) throws -> DecodedFrame<(type: UInt8, content: [UInt8])> {
            try .reading(bytes) { reader in
                let type = try reader.byte()
                let length = try reader.integer(as: UInt32.self)
                return (type, [UInt8](try reader.bytes(max(0, Int(length) - 4))))
            }
        }
    }

    /// An error of the server: the session can continue.
    private struct Refusal: Error {
        var code = ""
    }

    private final class Session {
        let connection: Connection
        private(set) var queries = 0

        init(_ connection: Connection) { self.connection = connection }

        static func begin(_ connection: Connection) -> Promise<Session> {
            var startup = ByteWriter()
            startup.append(196_608 as UInt32)
            for text in ["user", "nobody", "database", "postgres", ""] { startup.append(text + "\0") }
            var message = ByteWriter()
            message.append(UInt32(startup.bytes.count + 4))
            message.append(startup.bytes)
            let session = Session(connection)
            return connection.write(message.bytes).then { session.answer() }.map { _ in session }
        }

        /// Sends a simple query.
        /// - Returns: the first column of its rows.
        func query(_ text: String) -> Promise<[String]> {
            queries += 1
            var message = ByteWriter()
            message.append([UInt8(ascii: "Q")])
            message.append(UInt32(text.utf8.count + 5))
            message.append(text + "\0")
            return connection.write(message.bytes).then { self.answer() }
        }

        /// Reads up to "ready for query".
        private func answer() -> Promise<[String]> {
            var rows: [String] = []
            var refusal: Refusal?
            return connection.forEachFrame(MessageDecoder()) { message, _ in
                try message.content.withUnsafeBytes { content in
                    var reader = ByteReader(content.bytes)
                    switch message.type {
                    case UInt8(ascii: "D"):
                        try reader.skip(2)
                        rows.append(try String(utf8: reader.bytes(prefixedBy: UInt32.self, limit: 1024)))
                    case UInt8(ascii: "E"):
                        while !reader.isAtEnd {
                            let field = try reader.byte()
                            if field == 0 { break }
                            let text = try String(utf8: reader.bytes(until: 0))
                            if field == UInt8(ascii: "C") { refusal = Refusal(code: text) }
                        }
                        // A session that cannot begin never becomes ready.
                        if self.queries == 0 { throw refusal ?? Refusal() }
                    case UInt8(ascii: "Z"): throw StopReading()
                    default: break
                    }
                }
            }.map {
                if let refusal { throw refusal }
                return rows
            }
        }
    }

    /// Runs `body` with a pool of at most four sessions.
    private func withPool(_ body: (Pool<Session>) throws -> Void) throws {
        let folder = Folder()
        defer { _ = try? hang(ChildProcess.run("rm", ["-rf", folder.path])) }
        chmod(folder.path, 0o777)
        // It refuses to run as root.
        let user = geteuid() == 0 ? ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"] : []
        func command(_ words: String...) -> [String] { user + words }
        let make = command(
            "\(Self.programs)/initdb", "-D", folder / "data", "-A", "trust", "-U", "nobody", "--no-sync", "-E", "UTF8",
            "--locale=C")
        let made = try hang(ChildProcess.run(make[0], Array(make[1...])), timeout: patience)
        expectEqual(made.status, .exited(0), "\(String(decoding: made.standardError, as: UTF8.self))")
        let serve = command(
            "\(Self.programs)/postgres", "-D", folder / "data", "-k", folder.path, "-c", "listen_addresses=", "-F")
        let server = try ChildProcess.spawn(
            serve[0], arguments: Array(serve[1...]), standardOutput: .null, standardError: .null)
        defer {
            try? server.kill(SIGINT)
            _ = hang(server.exit)
        }
        let address = try SocketAddress("unix:\(folder / ".s.PGSQL.5432")")
        let pool = Pool(
            to: .address(address), limits: PoolLimits(perKey: 4), keepsAfter: { $0 is Refusal },
            prepare: { connection, _ in Session.begin(connection) })
        // Until it has created its socket, and has recovered its data.
        let ready = retry(maxAttempts: 1_000, delay: .constant(.milliseconds(20))) { _ in
            pool.with { $0.query("SELECT 1") }
        }
        expectEqual(try hang(ready, timeout: patience), ["1"])
        try body(pool)
        pool.close()
    }

    @Test(.inRealTime, .enabled(if: isInstalled)) func sessionsOutliveErrorsAndNoneIsLostByCancellations() throws {
        try withPool { pool in
            func ask(_ text: String) throws -> [String] {
                try hang(pool.with { $0.query(text) }, timeout: patience)
            }
            _ = try ask("CREATE TABLE item (number int PRIMARY KEY)")
            _ = try ask("INSERT INTO item VALUES (-1)")
            let process = try ask("SELECT pg_backend_pid()")
            let twice = #expect(throws: Refusal.self) { try ask("INSERT INTO item VALUES (-1)") }
            expectEqual(twice?.code, "23505")
            expectEqual(try ask("SELECT pg_backend_pid()"), process, "the session goes on")

            var dice = SplitMix64(1)
            var inserts: [Promise<[String]>] = []
            for number in 0..<1_000 {
                let text = "INSERT INTO item VALUES (\(number)) RETURNING number"
                let insert =
                    switch dice.below(3) {
                    case 0: pool.with { $0.query(text) }
                    case 1:
                        pool.with { session in
                            session.query("BEGIN").then { _ in session.query(text) }.then { rows in
                                session.query("COMMIT").map { _ in rows }
                            }
                        }
                    default:
                        Promise(on: .current) {
                            try await pool.with { session in
                                _ = try await session.query("BEGIN").value
                                let rows = try await session.query(text).value
                                _ = try await session.query("COMMIT").value
                                return rows
                            }
                        }
                    }
                insert.ignoringErrors()
                inserts.append(insert)
                if dice.once(in: 4) { dice.pick(inserts.suffix(9)).cancel() }
                if dice.once(in: 8) { hang(after(.microseconds(dice.below(400)))) }
                expect(pool.counts.open + pool.counts.making <= 4)
            }
            let results = hang(when(resolved: inserts))
            expect(pool.counts.waiting == 0 && pool.counts.making == 0 && pool.counts.idle == pool.counts.open)
            let stored = Set(try ask("SELECT number FROM item WHERE number >= 0"))
            let answered = results.compactMap { try? $0.get() }.flatMap { $0 }
            expect(inserts.count { $0.isCancelled } > 50 && inserts.count { $0.isFulfilled } > 500)
            expect(inserts.allSatisfy { $0.isFulfilled || $0.isCancelled })
            expect(Set(answered).isSubset(of: stored) && Set(answered).count == answered.count)
            let clients = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
            let others = retry(maxAttempts: 500, delay: .constant(.milliseconds(10))) { _ in
                pool.with { $0.query(clients) }.get {
                    if $0.first.flatMap(Int.init) ?? 99 > pool.counts.open { throw Flaw() }
                }
            }
            #expect(throws: Never.self, "each connection that was given up has ended") {
                try hang(others, timeout: patience)
            }
        }
    }
}
