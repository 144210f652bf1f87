import Glibc
import Reactor

// The commands on the connection and on the server.

extension Session {
    /// `PING [message]`. A subscriber is answered in the form of the messages that it waits for.
    func ping(_ request: Request) -> Reply {
        let message = request.count > 1 ? request[1] : nil
        if !subscriptions.isEmpty && version == .resp2 { return .array([.bulk("pong"), .bulk(message ?? [])]) }
        return message.map { .bulk($0) } ?? .simple("PONG")
    }

    /// `HELLO [version [AUTH name password] [SETNAME name]]`: there are neither passwords nor names of clients.
    func hello(_ request: Request) throws(CommandError) -> Reply {
        var version = version
        if request.count > 1 {
            guard let number = parseInteger(request[1]) else {
                throw CommandError(text: "ERR Protocol version is not an integer or out of range")
            }
            guard let known = ProtocolVersion(rawValue: number) else { throw .unsupportedVersion }
            version = known
        }
        var words = request.dropFirst(2).makeIterator()
        while let word = words.next() {
            switch optionName(word) {
            case "auth":
                if let name = words.next(), words.next() != nil {
                    if name == Array("default".utf8) { continue }
                    throw CommandError(text: "WRONGPASS invalid username-password pair or user is disabled.")
                }
            case "setname" where words.next() != nil: continue
            default: break
            }
            throw CommandError(text: "ERR Syntax error in HELLO option '\(excerpt(word))'")
        }
        self.version = version
        return .map([
            .bulk("server"), .bulk("kv-server"), .bulk("version"), .bulk(Self.redisVersion),
            .bulk("proto"), .integer(version.rawValue), .bulk("id"), .integer(id), .bulk("mode"), .bulk("standalone"),
            .bulk("role"), .bulk("master"), .bulk("modules"), .array([]),
        ])
    }

    /// The version of redis whose answers these are.
    private static var redisVersion: String { "7.0.15" }

    /// `RESET`: the session is as if it had just begun.
    func reset() -> Reply {
        unsubscribe()
        version = .resp2
        return .simple("RESET")
    }

    /// `QUIT`: the connection ends behind this answer.
    func quit() -> Reply {
        isOver = true
        return .ok
    }

    /// `SELECT 0`: there is one database.
    func select(_ request: Request) throws(CommandError) -> Reply {
        guard try request.integer(1) == 0 else { throw .noSuchDatabase }
        return .ok
    }

    /// `FLUSHALL [ASYNC | SYNC]`
    func removeAllKeys(_ request: Request) throws(CommandError) -> Reply {
        guard request.count == 1 || ["async", "sync"].contains(optionName(request[1])) else { throw .syntax }
        store.removeAll()
        return .ok
    }

    /// `CONFIG GET name…`: names and values of the parameters that redis-benchmark and redis-cli ask for.
    func configuration(_ request: Request) throws(CommandError) -> Reply {
        guard optionName(request[1]) == "get" else {
            throw CommandError(text: "ERR unknown subcommand '\(excerpt(request[1]))'. Try CONFIG HELP.")
        }
        guard request.count > 2 else { throw .wrongNumberOfArguments("config|get") }
        let names = request.dropFirst(2).map { String(decoding: $0, as: UTF8.self).lowercased() }
        let parameters = Self.parameters.filter { names.contains($0.name) || names.contains("*") }
        return .map(parameters.flatMap { [.bulk($0.name), .bulk($0.value)] })
    }

    private static let parameters: [(name: String, value: String)] = [
        ("appendonly", "no"), ("databases", "1"), ("maxmemory", "0"), ("save", ""),
    ]

    /// `INFO`, with the sections that the clients of redis read.
    func serverInformation() -> Reply {
        let keyspace = store.count == 0 ? "" : "db0:keys=\(store.count),expires=\(store.expiringCount),avg_ttl=0\n"
        let text = """
            # Server
            redis_mode:standalone
            process_id:\(getpid())
            uptime_in_seconds:\((EventLoop.current.now - server.start).components.seconds)

            # Clients
            connected_clients:\(server.openSessions)

            # Stats
            total_commands_processed:\(server.commandsProcessed)
            expired_keys:\(store.expiredCount)

            # Keyspace
            \(keyspace)
            """
        return .bulk(text.split(separator: "\n", omittingEmptySubsequences: false).joined(separator: "\r\n"))
    }
}
