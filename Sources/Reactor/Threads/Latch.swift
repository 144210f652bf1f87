/// A one-shot event, opened once; threads and closures wait for it.
final class Latch: Sendable {
    private struct LatchState {
        var isOpen = false
        var bodies = NumberedList<@Sendable () -> Void>()
    }

    private let state = LockedValue(LatchState())
    private let hasOpened = ThreadSignal()

    var count: Int { state.withLock { $0.bodies.count } }

    /// Calls the waiting bodies, and then opens the latch: no other thread calls a body at the same time.
    func open() {
        while true {
            let bodies = state.withLock { state in
                state.isOpen = state.bodies.isEmpty
                return state.bodies.removeAll()
            }
            if bodies.isEmpty { return hasOpened.wakeAll() }
            for body in bodies { body() }
        }
    }

    func wait() { state.wait(for: hasOpened) { $0.isOpen ? () : nil } }

    /// Calls `body` on the thread that opens the latch, before it is open, or at once if the latch is open already.
    /// - Returns: an identifier for `forget`.
    @discardableResult
    func whenOpen(_ body: @escaping @Sendable () -> Void) -> Int {
        let id = state.withLock { $0.isOpen ? 0 : $0.bodies.add(body) }
        if id == 0 { body() }
        return id
    }

    /// Releases the waiting body for which `whenOpen` returned `id`, if it is still there.
    @discardableResult
    func forget(_ id: Int) -> Bool {
        // Bound to a name, so that the body is released after the lock.
        let removed = state.withLock { $0.bodies.remove(id) }
        return withExtendedLifetime(removed) { removed != nil }
    }
}
