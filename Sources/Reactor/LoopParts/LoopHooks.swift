/// The hooks of a loop.
///
/// Invariant: used on the loop's thread only. A class, because hooks use the loop, and so this object.
final class LoopHooks {
    enum Moment { case beforeWaiting, afterWaiting }

    private struct Hook {
        let body: () -> Void
        let callSite: CallSite
    }

    // A hook's identifier is its number in the list; negated for the second list.
    private var before = NumberedList<Hook>()
    private var after = NumberedList<Hook>()
    /// Stored, since each turn reads it.
    @exclusivity(unchecked) private(set) var isEmpty = true
    private var areBeingCalled = false
    /// The moment at which the wait that the hooks precede must end; `.max` for never.
    private(set) var limit = Int64.max

    func hasAny(_ moment: Moment) -> Bool { moment == .beforeWaiting ? !before.isEmpty : !after.isEmpty }

    func contains(_ id: Int) -> Bool { self[id] != nil }

    private subscript(_ id: Int) -> Hook? { id > 0 ? before[id] : after[-id] }

    /// - Returns: an identifier, never zero.
    func add(_ body: @escaping () -> Void, _ callSite: CallSite, _ moment: Moment) -> Int {
        isEmpty = false
        let hook = Hook(body: body, callSite: callSite)
        return moment == .beforeWaiting ? before.add(hook) : -after.add(hook)
    }

    /// Removes a hook, and releases its closure when the list is consistent again.
    /// - Returns: whether there was one.
    func remove(_ id: Int) -> Bool {
        let removed = id > 0 ? before.remove(id) : after.remove(-id)
        isEmpty = before.isEmpty && after.isEmpty
        return withExtendedLifetime(removed) { removed != nil }
    }

    /// Removes all hooks, and releases them when the lists are consistent again.
    /// - Returns: whether there was any.
    func removeAll() -> Bool {
        isEmpty = true
        let removed = before.removeAll() + after.removeAll()
        return !removed.isEmpty
    }

    /// Calls the hooks. Turns inside a hook call none.
    func call(_ moment: Moment, _ meter: LoopMeter, _ limit: Int64 = .max) {
        guard !areBeingCalled else { return }
        areBeingCalled = true
        self.limit = limit
        defer { areBeingCalled = false }
        meter.beginTiming()
        // An earlier hook may have cancelled it.
        for id in moment == .beforeWaiting ? before.all.map(\.number) : after.all.map({ -$0.number }) {
            guard let hook = self[id] else { continue }
            meter.call(.hook, hook.callSite) { hook.body() }
        }
    }
}
