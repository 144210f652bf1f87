import Glibc
import Promises
import Reactor
import ReactorIO

/// The keys and their values.
final class Store {
    enum Value {
        case string(SharedBytes)
        /// A sum of `INCR`, which other commands see as a string of its digits.
        case number(Int)
        case list(List)
    }

    /// A list that grows at its head.
    final class List {
        /// From the tail to the head, so that a push moves nothing.
        private var reversed: [[UInt8]] = []

        var count: Int { reversed.count }

        func push(_ item: [UInt8]) { reversed.append(item) }

        /// The items from `start` through `end`, counted from the head.
        func items(from start: Int, through end: Int) -> some Sequence<[UInt8]> {
            reversed[(count - 1 - end)...(count - 1 - start)].reversed()
        }
    }

    private struct Entry {
        var value: Value
        var deadline: LoopInstant?
        /// If the key has a deadline, its index in `expiring`.
        var place = 0
    }

    private typealias Index = Dictionary<Key, Entry>.Index

    private var entries: [Key: Entry] = [:]
    /// The keys that expire, in any order.
    private var expiring: [Key] = []
    /// The index in `expiring` where the next sweep begins.
    private var sweepIndex = 0
    var expiredCount = 0

    private var now: LoopInstant { EventLoop.current.now }

    var count: Int { entries.count }
    var expiringCount: Int { expiring.count }

    // MARK: Values

    /// The string at `key`; `nil` if there is no such key.
    func string(at key: RawSpan) throws(CommandError) -> SharedBytes? {
        switch value(at: key) {
        case .string(let bytes): bytes
        case .number(let number): SharedBytes(Array(String(number).utf8))
        case .list: throw .wrongType
        case nil: nil
        }
    }

    /// The list at `key`; `nil` if there is no such key.
    func list(at key: RawSpan) throws(CommandError) -> List? {
        switch value(at: key) {
        case .list(let list): list
        case .string, .number: throw .wrongType
        case nil: nil
        }
    }

    func contains(_ key: RawSpan) -> Bool { index(of: key) != nil }

    /// Sets the value of a key, which expires at `deadline`, never, or when it would have before.
    func set(
        _ key: RawSpan, to value: Value, expiringAt deadline: LoopInstant? = nil,
        keepingDeadline keepsDeadline: Bool = false
    ) {
        if let entry = index(of: key) {
            entries.values[entry].value = value
            if !keepsDeadline { setDeadline(deadline, of: entry) }
        } else {
            insert(value, at: key)
            if let deadline { setDeadline(deadline, of: key) }
        }
    }

    /// Adds `step` to the number at `key`, which is zero if there is no such key. The deadline stays.
    /// - Returns: the sum.
    func add(_ step: Int, at key: RawSpan) throws(CommandError) -> Int {
        let entry = index(of: key)
        let number = if let entry { try number(in: entries.values[entry].value) } else { 0 }
        let (sum, overflow) = number.addingReportingOverflow(step)
        if overflow { throw .overflow }
        if let entry { entries.values[entry].value = .number(sum) } else { insert(.number(sum), at: key) }
        return sum
    }

    private func number(in value: Value) throws(CommandError) -> Int {
        switch value {
        case .number(let number): return number
        case .string(let digits):
            guard let number = digits.withUnsafeBytes({ parseInteger($0.bytes) }) else { throw .notInteger }
            return number
        case .list: throw .wrongType
        }
    }

    private func insert(_ value: Value, at key: RawSpan) { entries[.owned([UInt8](key))] = Entry(value: value) }

    /// Removes a key.
    /// - Returns: true if it existed.
    @discardableResult
    func remove(_ key: RawSpan) -> Bool {
        guard let entry = index(of: key) else { return false }
        remove(entry)
        return true
    }

    func removeAll() {
        entries = [:]
        expiring = []
    }

    private func value(at key: RawSpan) -> Value? { index(of: key).map { entries.values[$0].value } }

    /// The place of `key`. Removes a key that has expired: then, and if there is none, `nil`.
    private func index(of key: RawSpan) -> Index? {
        // The bytes are lent for the call, and nothing stores this key.
        guard let entry = key.withUnsafeBytes({ entries.index(forKey: .lent($0)) }) else { return nil }
        guard let deadline = entries.values[entry].deadline, deadline <= now else { return entry }
        expire(entry)
        return nil
    }

    private func remove(_ entry: Index) {
        setDeadline(nil, of: entry)
        entries.remove(at: entry)
    }

    // MARK: Time to live

    /// The time when a key expires; `nil` if it never does, or does not exist.
    func deadline(of key: RawSpan) -> LoopInstant? { index(of: key).flatMap { entries.values[$0].deadline } }

    /// Sets the time when a key expires; the key must exist.
    func setDeadline(_ deadline: LoopInstant, of key: RawSpan) { index(of: key).map { setDeadline(deadline, of: $0) } }

    private func setDeadline(_ deadline: LoopInstant?, of entry: Index) {
        let hadDeadline = entries.values[entry].deadline != nil
        if !hadDeadline && deadline == nil { return }
        entries.values[entry].deadline = deadline
        if !hadDeadline {
            entries.values[entry].place = expiring.count
            expiring.append(entries.keys[entry])
        } else if deadline == nil {
            removeExpiring(at: entries.values[entry].place)
        }
    }

    /// Removes expired keys. Checks at most `limit` of the keys that expire, and continues where the last sweep
    /// stopped.
    /// - Returns: true if more than a quarter of the checked keys had expired, so another sweep is worthwhile soon.
    func sweep(atMost limit: Int) -> Bool {
        let now = now
        var expired = 0
        let checks = min(limit, expiring.count)
        for _ in 0..<checks {
            if sweepIndex >= expiring.count { sweepIndex = 0 }
            if let entry = entries.index(forKey: expiring[sweepIndex]), let deadline = entries.values[entry].deadline,
                deadline <= now
            {
                expire(entry)
                expired += 1
            } else {
                sweepIndex += 1
            }
        }
        return expired > checks / 4
    }

    private func expire(_ entry: Index) {
        remove(entry)
        expiredCount += 1
    }

    /// Moves the last key into the place of the removed one.
    private func removeExpiring(at place: Int) {
        let last = expiring.removeLast()
        guard place < expiring.count else { return }
        expiring[place] = last
        if let entry = entries.index(forKey: last) { entries.values[entry].place = place }
    }
}

/// A key: any bytes, hashed in one piece, with a seed unknown to clients. A key used for a lookup is lent.
private enum Key: Hashable {
    case owned([UInt8])
    /// Valid during a lookup, and never stored.
    case lent(UnsafeRawBufferPointer)

    func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        switch self {
        case .owned(let bytes): bytes.withUnsafeBytes(body)
        case .lent(let bytes): body(bytes)
        }
    }

    static func == (one: Key, other: Key) -> Bool {
        one.withBytes { one in
            other.withBytes {
                one.count == $0.count && (one.isEmpty || memcmp(one.baseAddress!, $0.baseAddress!, one.count) == 0)
            }
        }
    }

    func hash(into hasher: inout Hasher) { withBytes { hasher.combine(bytes: $0) } }
}
