import Reactor

// The commands on keys, strings and lists. Words are counted as in a request: its name is word 0.

extension Session {
    /// `GET key`
    func get(_ request: Request) throws(CommandError) -> Reply { .bulk(try store.string(at: Key(request[1]))) }

    /// `SET key value [EX seconds | PX milliseconds] [NX | XX]`
    func set(_ request: Request) throws(CommandError) -> Reply {
        let key = Key(request[1])
        var deadline: LoopInstant?
        if request.count > 3 {
            let options = try SetOptions(request)
            if let mustExist = options.mustExist, store.contains(key) != mustExist { return .bulk(nil) }
            deadline = options.timeToLive.map { EventLoop.current.now + $0 }
        }
        store.set(key, to: .string(request[2]), expiringAt: deadline)
        return .ok
    }

    /// `INCR key`, `INCRBY key step`
    func increment(_ request: Request, by step: Int) throws(CommandError) -> Reply {
        let key = Key(request[1])
        var number = 0
        if let digits = try store.string(at: key) {
            guard let current = parseInteger(digits[...]) else { throw .notInteger }
            number = current
        }
        let (sum, overflow) = number.addingReportingOverflow(step)
        if overflow { throw .overflow }
        store.replace(key, with: .string(Array(String(sum).utf8)))
        return .integer(sum)
    }

    /// `DEL key…`
    func delete(_ request: Request) -> Reply { .integer(request.dropFirst().count { store.remove(Key($0)) }) }

    /// `EXISTS key…`
    func exists(_ request: Request) -> Reply { .integer(request.dropFirst().count { store.contains(Key($0)) }) }

    // MARK: Time to live

    /// `EXPIRE key seconds`, `PEXPIRE key milliseconds`. A time that is not above zero removes the key.
    func expire(
        _ request: Request, inUnitsOf unit: Duration, _ command: Command
    ) throws(CommandError) -> Reply {
        let key = Key(request[1])
        let time = try request.integer(2)
        guard let timeToLive = Duration(time, inUnitsOf: unit) else { throw .invalidExpireTime(command) }
        guard store.contains(key) else { return .integer(0) }
        if time > 0 {
            store.setDeadline(EventLoop.current.now + timeToLive, of: key)
        } else {
            store.remove(key)
        }
        return .integer(1)
    }

    /// `TTL key`, `PTTL key`: -2 if there is no such key, -1 if it never expires.
    func timeToLive(_ request: Request, inUnitsOf unit: Duration) -> Reply {
        let key = Key(request[1])
        guard store.contains(key) else { return .integer(-2) }
        guard let deadline = store.deadline(of: key) else { return .integer(-1) }
        let left = deadline - EventLoop.current.now
        return .integer(Int((left / unit).rounded()))
    }

    // MARK: Lists

    /// `LPUSH key item…`
    func pushToList(_ request: Request) throws(CommandError) -> Reply {
        let key = Key(request[1])
        let list: Store.List
        if let existing = try store.list(at: key) {
            list = existing
        } else {
            list = Store.List()
            store.set(key, to: .list(list))
        }
        for item in request.dropFirst(2) { list.push(item) }
        return .integer(list.count)
    }

    /// `LLEN key`
    func listLength(_ request: Request) throws(CommandError) -> Reply {
        .integer(try store.list(at: Key(request[1]))?.count ?? 0)
    }

    /// `LRANGE key start end`, both included; below zero they count from the tail, -1 being the last item.
    func listRange(_ request: Request) throws(CommandError) -> Reply {
        var (start, end) = (try request.integer(2), try request.integer(3))
        guard let list = try store.list(at: Key(request[1])) else { return .array([]) }
        if start < 0 { start = max(start + list.count, 0) }
        if end < 0 { end += list.count }
        end = min(end, list.count - 1)
        return start > end ? .array([]) : .array(list.items(from: start, through: end).map { .bulk($0) })
    }
}

/// The options behind the value of a `SET`.
private struct SetOptions {
    private(set) var timeToLive: Duration?
    /// `XX` and `NX`: whether the key must be there, or must not.
    private(set) var mustExist: Bool?

    init(_ request: Request) throws(CommandError) {
        var index = 3
        while index < request.count {
            switch String(decoding: request[index], as: UTF8.self).lowercased() {
            case "nx" where mustExist == nil: mustExist = false
            case "xx" where mustExist == nil: mustExist = true
            case "ex" where timeToLive == nil: timeToLive = try Self.time(request, after: &index, .seconds(1))
            case "px" where timeToLive == nil: timeToLive = try Self.time(request, after: &index, .milliseconds(1))
            default: throw .syntax
            }
            index += 1
        }
    }

    /// The time behind an `EX` or `PX` at `index`, which is moved to the time.
    private static func time(
        _ request: Request, after index: inout Int, _ unit: Duration
    ) throws(CommandError) -> Duration {
        index += 1
        guard index < request.count else { throw .syntax }
        let time = try request.integer(index)
        guard time > 0, let duration = Duration(time, inUnitsOf: unit) else { throw .invalidExpireTime(.set) }
        return duration
    }
}

extension Request {
    /// The word at `index` as an integer.
    func integer(_ index: Int) throws(CommandError) -> Int {
        guard let integer = parseInteger(self[index][...]) else { throw .notInteger }
        return integer
    }
}

extension Duration {
    /// `count` units; `nil` near the limit of 64 bits of milliseconds, where redis refuses a time too.
    fileprivate init?(_ count: Int, inUnitsOf unit: Duration) {
        let milliseconds = count.multipliedReportingOverflow(by: Int(unit / .milliseconds(1)))
        guard !milliseconds.overflow, milliseconds.partialValue.magnitude < Int.max / 2 else { return nil }
        self = .milliseconds(milliseconds.partialValue)
    }
}
