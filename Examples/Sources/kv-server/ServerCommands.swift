// The commands on the connection and on the server.

extension Session {
    /// `PING [message]`. A subscriber is answered in the form of the messages that it expects.
    func ping(_ message: [UInt8]?) -> Reply {
        if !subscriptions.isEmpty && version == .resp2 { return .array([.bulk("pong"), .bulk(message ?? [])]) }
        return message.map { .bulk($0) } ?? .simple("PONG")
    }

    /// `HELLO [version [AUTH name password] [SETNAME name]]`: neither passwords nor client names are supported.
    func hello(_ words: [[UInt8]]) throws(CommandError) -> Reply {
        var version = version
        var words = words.makeIterator()
        if let word = words.next() {
            guard let number = parseInteger(word.span.bytes) else {
                throw CommandError(text: "ERR Protocol version is not an integer or out of range")
            }
            guard let known = ProtocolVersion(rawValue: number) else { throw .unsupportedVersion }
            version = known
        }
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

    /// `RESET`: restores the initial state of the session.
    func reset() -> Reply {
        unsubscribe()
        version = .resp2
        return .simple("RESET")
    }

    /// `QUIT`: the connection ends after this answer.
    func quit() -> Reply {
        isOver = true
        return .ok
    }

    /// `SELECT 0`: there is one database.
    func select(_ request: inout Request, _ bytes: RawSpan) throws(CommandError) -> Reply {
        guard try request.integer(bytes) == 0 else { throw .noSuchDatabase }
        return .ok
    }

    /// `FLUSHALL [ASYNC | SYNC]`
    func removeAllKeys(_ words: [[UInt8]]) throws(CommandError) -> Reply {
        guard words.isEmpty || ["async", "sync"].contains(optionName(words[0])) else { throw .syntax }
        if store.count > 10_000 { server.hasReleasedMuch = true }
        store.removeAll()
        return .ok
    }

    /// `CONFIG GET name…`: names and values of the parameters that redis-benchmark and redis-cli ask for. `CONFIG RESETSTAT`.
    func configuration(_ words: [[UInt8]]) throws(CommandError) -> Reply {
        let subcommand = optionName(words[0])
        if subcommand == "resetstat" {
            server.resetStatistics()
            return .ok
        }
        guard subcommand == "get" else {
            throw CommandError(text: "ERR unknown subcommand '\(excerpt(words[0]))'. Try CONFIG HELP.")
        }
        guard words.count > 1 else { throw .wrongNumberOfArguments("config|get") }
        let names = words.dropFirst().map(optionName)
        let parameters = Self.parameters.filter { names.contains($0.name) || names.contains("*") }
        return .map(parameters.flatMap { [.bulk($0.name), .bulk($0.value)] })
    }

    private static let parameters: [(name: String, value: String)] = [
        ("appendonly", "no"), ("databases", "1"), ("maxmemory", "0"), ("save", ""),
    ]
}
