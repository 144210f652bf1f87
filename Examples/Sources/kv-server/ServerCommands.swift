import Glibc
import Reactor

// The commands on the connection and on the server.

extension Session {
    /// `PING [message]`. A subscriber is answered in the form of the messages that it waits for.
    func ping(_ request: Request) -> Reply {
        let message = request.count > 1 ? request[1] : nil
        if !subscriptions.isEmpty { return .array([.bulk("pong"), .bulk(message ?? [])]) }
        return message.map { .bulk($0) } ?? .simple("PONG")
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

    /// `FLUSHALL`
    func removeAllKeys() -> Reply {
        store.removeAll()
        return .ok
    }

    /// `CONFIG GET name…`: names and values of the parameters that redis-benchmark and redis-cli ask for.
    func configuration(_ request: Request) throws(CommandError) -> Reply {
        let subcommand = String(decoding: request[1], as: UTF8.self)
        guard subcommand.lowercased() == "get" else {
            throw CommandError(text: "ERR unknown subcommand '\(subcommand)'. Try CONFIG HELP.")
        }
        guard request.count > 2 else { throw .wrongNumberOfArguments("config|get") }
        let names = request.dropFirst(2).map { String(decoding: $0, as: UTF8.self).lowercased() }
        let parameters = Self.parameters.filter { names.contains($0.name) || names.contains("*") }
        return .array(parameters.flatMap { [.bulk($0.name), .bulk($0.value)] })
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
