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
            .bulk("server"), .bulk("kv-server"), .bulk("version"), .bulk(redisVersion),
            .bulk("proto"), .integer(version.rawValue), .bulk("id"), .integer(id), .bulk("mode"), .bulk("standalone"),
            .bulk("role"), .bulk("master"), .bulk("modules"), .array([]),
        ])
    }

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
        if store.count > 10_000 { server.hasReleasedMuch = true }
        store.removeAll()
        return .ok
    }

    /// `CONFIG GET name…`: names and values of the parameters that redis-benchmark and redis-cli ask for. `CONFIG RESETSTAT`.
    func configuration(_ request: Request) throws(CommandError) -> Reply {
        let subcommand = optionName(request[1])
        if subcommand == "resetstat" {
            server.resetStatistics()
            return .ok
        }
        guard subcommand == "get" else {
            throw CommandError(text: "ERR unknown subcommand '\(excerpt(request[1]))'. Try CONFIG HELP.")
        }
        guard request.count > 2 else { throw .wrongNumberOfArguments("config|get") }
        let names = request.dropFirst(2).map(optionName)
        let parameters = Self.parameters.filter { names.contains($0.name) || names.contains("*") }
        return .map(parameters.flatMap { [.bulk($0.name), .bulk($0.value)] })
    }

    private static let parameters: [(name: String, value: String)] = [
        ("appendonly", "no"), ("databases", "1"), ("maxmemory", "0"), ("save", ""),
    ]
}
