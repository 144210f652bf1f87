import Reactor

/// The keys and their values.
final class Store {
    enum Value {
        case string([UInt8])
        case list(List)
    }

    /// A list that grows at its head.
    final class List {
        /// From the tail to the head, so that a push at the head moves nothing.
        private var reversed: [[UInt8]] = []

        var count: Int { reversed.count }

        func push(_ item: [UInt8]) { reversed.append(item) }

        /// The items from `start` to `end`, both included, counted from the head.
        func items(from start: Int, through end: Int) -> some Sequence<[UInt8]> {
            reversed[(count - 1 - end)...(count - 1 - start)].reversed()
        }
    }

    private struct Entry {
        var value: Value
        var expiry: Expiry?
    }

    private struct Expiry {
        var deadline: LoopInstant
        /// The key's index in `expiring`.
        var index: Int
    }

    private var entries: [Key: Entry] = [:]
    /// The keys that expire, in any order.
    private var expiring: [Key] = []
    /// Where the next sweep begins in `expiring`.
    private var sweepIndex = 0
    var expiredCount = 0

    private var now: LoopInstant { EventLoop.current.now }

    var count: Int { entries.count }
    var expiringCount: Int { expiring.count }

    // MARK: Values

    /// The string at `key`; `nil` if there is no such key.
    func string(at key: Key) throws(CommandError) -> [UInt8]? {
        switch self[key] {
        case .string(let bytes): bytes
        case .list: throw .wrongType
        case nil: nil
        }
    }

    /// The list at `key`; `nil` if there is no such key.
    func list(at key: Key) throws(CommandError) -> List? {
        switch self[key] {
        case .list(let list): list
        case .string: throw .wrongType
        case nil: nil
        }
    }

    func contains(_ key: Key) -> Bool { self[key] != nil }

    /// Sets the value of a key, which expires at `deadline`, or never.
    func set(_ key: Key, to value: Value, expiringAt deadline: LoopInstant? = nil) {
        let old = entries.updateValue(Entry(value: value), forKey: key)
        if let expiry = old?.expiry { removeExpiring(at: expiry.index) }
        if let deadline { setDeadline(deadline, of: key) }
    }

    /// Replaces the value of a key, which expires when it would have.
    func replace(_ key: Key, with value: Value) {
        if let index = entries.index(forKey: key) {
            entries.values[index].value = value
        } else {
            entries[key] = Entry(value: value)
        }
    }

    /// Removes a key.
    /// - Returns: whether it was there.
    @discardableResult
    func remove(_ key: Key) -> Bool {
        guard contains(key), let entry = entries.removeValue(forKey: key) else { return false }
        if let expiry = entry.expiry { removeExpiring(at: expiry.index) }
        return true
    }

    func removeAll() {
        entries = [:]
        expiring = []
    }

    private subscript(key: Key) -> Value? {
        guard let entry = entries[key] else { return nil }
        if let expiry = entry.expiry, expiry.deadline <= now {
            expire(key)
            return nil
        }
        return entry.value
    }

    // MARK: Time to live

    /// When a key expires; `nil` if it never does, or if there is no such key.
    func deadline(of key: Key) -> LoopInstant? { entries[key]?.expiry?.deadline }

    /// Sets when a key expires, which must be there.
    func setDeadline(_ deadline: LoopInstant, of key: Key) {
        guard let entry = entries.index(forKey: key) else { return }
        if entries.values[entry].expiry == nil {
            entries.values[entry].expiry = Expiry(deadline: deadline, index: expiring.count)
            expiring.append(key)
        } else {
            entries.values[entry].expiry?.deadline = deadline
        }
    }

    /// Removes expired keys. Checks at most `limit` of the keys that expire, and continues where the last sweep stopped.
    /// - Returns: whether more than a quarter of the checked keys were expired, so that another sweep is worthwhile soon.
    func sweep(atMost limit: Int) -> Bool {
        let now = now
        var expired = 0
        let checks = min(limit, expiring.count)
        for _ in 0..<checks {
            if sweepIndex >= expiring.count { sweepIndex = 0 }
            let key = expiring[sweepIndex]
            if let deadline = deadline(of: key), deadline <= now {
                expire(key)
                expired += 1
            } else {
                sweepIndex += 1
            }
        }
        return expired > checks / 4
    }

    private func expire(_ key: Key) {
        guard let entry = entries.removeValue(forKey: key) else { return }
        if let expiry = entry.expiry { removeExpiring(at: expiry.index) }
        expiredCount += 1
    }

    /// Moves the last key into the place of the one that is removed.
    private func removeExpiring(at index: Int) {
        let last = expiring.removeLast()
        guard index < expiring.count else { return }
        expiring[index] = last
        if let entry = entries.index(forKey: last) { entries.values[entry].expiry?.index = index }
    }
}

/// A key: any bytes, hashed in one piece.
struct Key: Hashable {
    let bytes: [UInt8]

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    func hash(into hasher: inout Hasher) {
        bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
    }
}
