import Promises
import ReactorIO

/// The commands by their names.
enum Command: Int, CaseIterable {
    case get, set, incr, incrby
    case del, exists, expire, pexpire, ttl, pttl
    case lpush, lrange, llen
    case publish, subscribe, unsubscribe
    case ping, echo, select, hello, reset, quit
    case dbsize, flushall, config, info, command

    var name: String { "\(self)" }

    /// The number of words of a valid request, including the command's name.
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

    /// The command of this name, case-insensitively; `nil` if there is none.
    init?(_ name: RawSpan) {
        guard let name = Self.packed(name), let index = Self.names.firstIndex(of: name) else { return nil }
        self = Self.allCases[index]
    }

    private static let names = allCases.map { packed(Array($0.name.utf8).span.bytes) }

    /// A name packed into an integer, so that a comparison touches no other memory; `nil` if it is longer than every
    /// command's name.
    private static func packed(_ name: RawSpan) -> UInt128? {
        if name.byteCount > 16 { return nil }
        var packed: UInt128 = 0
        for index in 0..<name.byteCount {
            packed = packed << 8 | UInt128(name.unsafeLoad(fromByteOffset: index, as: UInt8.self) | 0x20)
        }
        return packed
    }
}

extension Session {
    /// Executes a request that has a valid number of words, the first of which has been taken.
    /// - Parameter frame: reads the bytes that the connection lends, and retains parts of them.
    func execute(
        _ command: Command, _ request: inout Request, _ bytes: RawSpan, in frame: ByteReader
    ) throws(CommandError) -> Reply {
        switch command {
        case .get: try get(&request, bytes)
        case .set: try set(&request, bytes, in: frame)
        case .incr: try increment(bytes.extracting(request.next(bytes)), by: 1)
        case .incrby: try increment(bytes.extracting(request.next(bytes)), by: try request.integer(bytes))
        case .del: count(&request, bytes) { store.remove($0) }
        case .exists: count(&request, bytes) { store.contains($0) }
        case .expire: try expire(&request, bytes, inUnitsOf: .seconds(1), command)
        case .pexpire: try expire(&request, bytes, inUnitsOf: .milliseconds(1), command)
        case .ttl: timeToLive(&request, bytes, inUnitsOf: .seconds(1))
        case .pttl: timeToLive(&request, bytes, inUnitsOf: .milliseconds(1))
        case .lpush: try pushToList(&request, bytes)
        case .lrange: try listRange(&request, bytes)
        case .llen: .integer(try store.list(at: bytes.extracting(request.next(bytes)))?.count ?? 0)
        case .publish: publish(request.words(bytes))
        case .subscribe: subscribe(to: request.words(bytes))
        case .unsubscribe: request.left == 0 ? unsubscribe() : unsubscribe(from: request.words(bytes))
        case .ping: ping(request.words(bytes).first)
        case .echo: .bulk(request.words(bytes)[0])
        case .select: try select(&request, bytes)
        case .hello: try hello(request.words(bytes))
        case .reset: reset()
        case .quit: quit()
        case .dbsize: .integer(store.count)
        case .flushall: try removeAllKeys(request.words(bytes))
        case .config: try configuration(request.words(bytes))
        case .info: serverInformation(request.words(bytes))
        case .command: .array([])
        }
    }
}
