/// The commands by their names.
enum Command: Int, CaseIterable {
    case get, set, incr, incrby
    case del, exists, expire, pexpire, ttl, pttl
    case lpush, lrange, llen
    case publish, subscribe, unsubscribe
    case ping, echo, select, hello, reset, quit
    case dbsize, flushall, config, info, command

    var name: String { "\(self)" }

    /// The number of words that a request has, the command's name included.
    var words: ClosedRange<Int> {
        switch self {
        case .dbsize, .reset: 1...1
        case .ping, .flushall: 1...2
        case .get, .incr, .ttl, .pttl, .llen, .echo, .select: 2...2
        case .incrby, .publish: 3...3
        case .lrange: 4...4
        case .quit, .unsubscribe, .hello, .info, .command: 1...Int.max
        case .del, .exists, .subscribe, .config: 2...Int.max
        case .set, .expire, .pexpire, .lpush: 3...Int.max
        }
    }

    var isAllowedWhileSubscribed: Bool {
        switch self {
        case .subscribe, .unsubscribe, .ping, .reset, .quit: true
        default: false
        }
    }

    /// The command that a request names; `nil` if there is none of that name.
    init?(_ request: Request) {
        guard let name = request.withName({ CommandName($0) }), let command = Self.byName[name] else { return nil }
        self = command
    }

    private static let byName = Dictionary(
        uniqueKeysWithValues: allCases.map { (Array($0.name.utf8).withUnsafeBytes { CommandName($0)! }, $0) })
}

extension Session {
    /// Executes a request with a valid number of words.
    func execute(_ command: Command, _ request: Request) throws(CommandError) -> Reply {
        switch command {
        case .get: try get(request)
        case .set: try set(request)
        case .incr: try increment(request, by: 1)
        case .incrby: try increment(request, by: try request.integer(2))
        case .del: delete(request)
        case .exists: exists(request)
        case .expire: try expire(request, inUnitsOf: .seconds(1), command)
        case .pexpire: try expire(request, inUnitsOf: .milliseconds(1), command)
        case .ttl: timeToLive(request, inUnitsOf: .seconds(1))
        case .pttl: timeToLive(request, inUnitsOf: .milliseconds(1))
        case .lpush: try pushToList(request)
        case .lrange: try listRange(request)
        case .llen: try listLength(request)
        case .publish: publish(request)
        case .subscribe: subscribe(to: request.dropFirst())
        case .unsubscribe: request.count == 1 ? unsubscribe() : unsubscribe(from: request.dropFirst())
        case .ping: ping(request)
        case .echo: .bulk(request[1])
        case .select: try select(request)
        case .hello: try hello(request)
        case .reset: reset()
        case .quit: quit()
        case .dbsize: .integer(store.count)
        case .flushall: try removeAllKeys(request)
        case .config: try configuration(request)
        case .info: serverInformation(request)
        case .command: .array([])
        }
    }
}

/// The name of a command, whatever its case, in an integer: comparing and hashing it touches no other memory.
private struct CommandName: Hashable {
    private var packed: UInt128 = 0

    /// `nil` if the name is longer than any command's.
    init?(_ name: UnsafeRawBufferPointer) {
        if name.count > 16 { return nil }
        for byte in name { packed = packed << 8 | UInt128(byte | 0x20) }
    }
}
