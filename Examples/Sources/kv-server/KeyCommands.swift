import Reactor

// The commands on keys, strings and lists. Words are counted as in a request: its name is word 0.

extension Session {
    /// `GET key`
    func get(_ request: Request) throws(CommandError) -> Reply { .bulk(try store.string(at: Key(request[1]))) }

    /// `SET key value [EX seconds | PX milliseconds | EXAT second | PXAT millisecond | KEEPTTL] [NX | XX] [GET]`
    func set(_ request: Request) throws(CommandError) -> Reply {
        let key = Key(request[1])
        if request.count == 3 {
            store.set(key, to: .string(request[2]))
            return .ok
        }
        let options = try SetOptions(request)
        let old: Reply? = options.returnsOld ? .bulk(try store.string(at: key)) : nil
        if let mustExist = options.mustExist, store.contains(key) != mustExist { return old ?? .bulk(nil) }
        if options.keepsDeadline {
            store.replace(key, with: .string(request[2]))
        } else {
            store.set(key, to: .string(request[2]), expiringAt: options.timeToLive.map { EventLoop.current.now + $0 })
        }
        return old ?? .ok
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

    /// `EXPIRE key seconds [NX | XX | GT | LT]`, `PEXPIRE key milliseconds …`. A time that is not above zero removes the key.
    func expire(
        _ request: Request, inUnitsOf unit: Duration, _ command: Command
    ) throws(CommandError) -> Reply {
        let key = Key(request[1])
        let condition = try ExpireCondition(request)
        let time = try request.integer(2)
        guard let timeToLive = Duration(time, inUnitsOf: unit) else { throw .invalidExpireTime(command) }
        let deadline = EventLoop.current.now + timeToLive
        guard store.contains(key), condition.allows(deadline, insteadOf: store.deadline(of: key)) else {
            return .integer(0)
        }
        if time > 0 {
            store.setDeadline(deadline, of: key)
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
