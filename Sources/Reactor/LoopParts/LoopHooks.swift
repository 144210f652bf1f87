/// The hooks of a loop.
struct LoopHooks {
    struct Entry {
        let body: () -> Void
        let origin: CallSite
    }

    // A hook's identifier is its number in the list, negated in the second one.
    private(set) var before = NumberedList<Entry>()
    private(set) var after = NumberedList<Entry>()
    /// Stored, since each turn asks.
    private(set) var isEmpty = true
    var areBeingCalled = false

    enum Kind { case before, after }

    /// - Returns: an identifier, which is never zero.
    mutating func add(_ body: @escaping () -> Void, _ origin: CallSite, to list: Kind) -> Int {
        isEmpty = false
        let entry = Entry(body: body, origin: origin)
        return list == .before ? before.add(entry) : -after.add(entry)
    }

    subscript(_ id: Int) -> Entry? { id > 0 ? before[id] : after[-id] }

    mutating func remove(_ id: Int) -> Entry? {
        defer { isEmpty = before.isEmpty && after.isEmpty }
        return id > 0 ? before.remove(id) : after.remove(-id)
    }

    /// Returns the removed hooks, for the caller to release when the list is consistent again.
    mutating func removeAll() -> [Entry] {
        isEmpty = true
        return before.removeAll() + after.removeAll()
    }
}
