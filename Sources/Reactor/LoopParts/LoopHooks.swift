/// The hooks of a loop.
struct LoopHooks {
    struct Entry {
        let id: Int
        let body: () -> Void
        let origin: CallSite
    }

    private(set) var before: [Entry] = []
    private(set) var after: [Entry] = []
    /// Stored, since each turn asks.
    private(set) var isEmpty = true
    var areBeingCalled = false
    private var lastID = 0

    mutating func add(_ body: @escaping () -> Void, _ origin: CallSite, to list: Kind) -> Int {
        lastID += 1
        let entry = Entry(id: lastID, body: body, origin: origin)
        switch list {
        case .before: before.append(entry)
        case .after: after.append(entry)
        }
        isEmpty = false
        return lastID
    }

    enum Kind { case before, after }

    func contains(_ id: Int) -> Bool { before.contains { $0.id == id } || after.contains { $0.id == id } }

    mutating func remove(_ id: Int) -> Entry? {
        defer { isEmpty = before.isEmpty && after.isEmpty }
        if let index = before.firstIndex(where: { $0.id == id }) { return before.remove(at: index) }
        return after.firstIndex { $0.id == id }.map { after.remove(at: $0) }
    }

    /// Returns the removed hooks, for the caller to release when the list is consistent again.
    mutating func removeAll() -> [Entry] {
        defer {
            before = []
            after = []
            isEmpty = true
        }
        return before + after
    }
}
