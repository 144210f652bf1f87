import Promises
import Reactor
import ReactorIO

// The commands on keys, strings and lists. The first word of the request, its name, has been taken.

extension Session {
    /// `GET key`
    func get(_ request: inout Request, _ bytes: RawSpan) throws(CommandError) -> Reply {
        .bulk(try store.string(at: bytes.extracting(request.next(bytes))))
    }

    /// `SET key value [EX seconds | PX milliseconds | EXAT second | PXAT millisecond | KEEPTTL] [NX | XX] [GET]`
    func set(_ request: inout Request, _ bytes: RawSpan, in frame: ByteReader) throws(CommandError) -> Reply {
        let key = bytes.extracting(request.next(bytes))
        let value = Store.Value.string(frame.keep(bytes.extracting(request.next(bytes))))
        if request.left == 0 {
            store.set(key, to: value)
            return .ok
        }
        let options = try SetOptions(request.words(bytes))
        let old: Reply? = options.returnsOld ? .bulk(try store.string(at: key)) : nil
        if let mustExist = options.mustExist, store.contains(key) != mustExist { return old ?? .bulk(nil) }
        let deadline = options.timeToLive.map { EventLoop.current.now + $0 }
        store.set(key, to: value, expiringAt: deadline, keepingDeadline: options.keepsDeadline)
        return old ?? .ok
    }

    /// `INCR key`, `INCRBY key step`
    func increment(_ key: RawSpan, by step: Int) throws(CommandError) -> Reply {
        .integer(try store.add(step, at: key))
    }

    /// `DEL key…`, `EXISTS key…`: the number of words for which this is true.
    func count(_ request: inout Request, _ bytes: RawSpan, where isTrue: (RawSpan) -> Bool) -> Reply {
        var count = 0
        while request.left > 0 { if isTrue(bytes.extracting(request.next(bytes))) { count += 1 } }
        return .integer(count)
    }

    // MARK: Time to live

    /// `EXPIRE key seconds [NX | XX | GT | LT]`, `PEXPIRE key milliseconds …`. A time of zero or below removes the key.
    func expire(
        _ request: inout Request, _ bytes: RawSpan, inUnitsOf unit: Duration, _ command: Command
    ) throws(CommandError) -> Reply {
        let key = bytes.extracting(request.next(bytes))
        let digits = bytes.extracting(request.next(bytes))
        let condition = try ExpireCondition(request.words(bytes))
        guard let time = parseInteger(digits) else { throw .notInteger }
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
    func timeToLive(_ request: inout Request, _ bytes: RawSpan, inUnitsOf unit: Duration) -> Reply {
        let key = bytes.extracting(request.next(bytes))
        guard store.contains(key) else { return .integer(-2) }
        guard let deadline = store.deadline(of: key) else { return .integer(-1) }
        let left = deadline - EventLoop.current.now
        return .integer(Int((left / unit).rounded()))
    }

    // MARK: Lists

    /// `LPUSH key item…`
    func pushToList(_ request: inout Request, _ bytes: RawSpan) throws(CommandError) -> Reply {
        let key = bytes.extracting(request.next(bytes))
        let list: Store.List
        if let existing = try store.list(at: key) {
            list = existing
        } else {
            list = Store.List()
            store.set(key, to: .list(list))
        }
        while request.left > 0 { list.push([UInt8](bytes.extracting(request.next(bytes)))) }
        return .integer(list.count)
    }

    /// `LRANGE key start end`, both inclusive; negative ones count from the tail, -1 being the last item.
    func listRange(_ request: inout Request, _ bytes: RawSpan) throws(CommandError) -> Reply {
        let key = bytes.extracting(request.next(bytes))
        var (start, end) = (try request.integer(bytes), try request.integer(bytes))
        guard let list = try store.list(at: key) else { return .array([]) }
        if start < 0 { start = max(start + list.count, 0) }
        if end < 0 { end += list.count }
        end = min(end, list.count - 1)
        return start > end ? .array([]) : .array(list.items(from: start, through: end).map { .bulk($0) })
    }
}
