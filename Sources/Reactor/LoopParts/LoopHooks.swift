/// A loop's hooks. Invariant: used on the loop's thread only. A class, because hooks use the loop and thereby this
/// object.
final class LoopHooks {
    enum Moment { case beforeWaiting, afterWaiting }

    private struct Hook {
        let moment: Moment
        let body: () -> Void
        let callSite: CallSite
    }

    private var hooks = NumberedList<Hook>()
    /// Stored, because each turn reads it.
    @exclusivity(unchecked) private(set) var isEmpty = true
    private var areBeingCalled = false
    /// The latest end of the wait that follows the hooks, `.max` for never.
    private(set) var limit = Int64.max

    func hasAny(_ moment: Moment) -> Bool { hooks.all.contains { $0.element.moment == moment } }

    func contains(_ id: Int) -> Bool { hooks[id] != nil }

    /// - Returns: an identifier, never zero.
    func add(_ body: @escaping () -> Void, _ callSite: CallSite, _ moment: Moment) -> Int {
        isEmpty = false
        return hooks.add(Hook(moment: moment, body: body, callSite: callSite))
    }

    /// Returns true if there was such a hook. Its closure is released once the list is consistent.
    func remove(_ id: Int) -> Bool {
        let removed = hooks.remove(id)
        isEmpty = hooks.isEmpty
        return withExtendedLifetime(removed) { removed != nil }
    }

    func removeAll() -> Bool {
        isEmpty = true
        let removed = hooks.removeAll()
        return !removed.isEmpty
    }

    /// Calls the hooks. Turns inside a hook call none.
    func call(_ moment: Moment, _ meter: LoopMeter, _ limit: Int64 = .max) {
        guard !areBeingCalled else { return }
        areBeingCalled = true
        self.limit = limit
        defer { areBeingCalled = false }
        meter.beginTiming()
        // An earlier hook may have cancelled this one.
        for id in Array(hooks.all.map(\.number)) {
            guard let hook = hooks[id], hook.moment == moment else { continue }
            meter.call(.hook, hook.callSite) { hook.body() }
        }
    }
}
