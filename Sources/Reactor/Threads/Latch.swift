/// A one-shot event that threads and closures can wait for.
package final class Latch: Sendable {
    private struct LatchState {
        var isOpen = false
        var bodies = NumberedList<@Sendable () -> Void>()
    }

    private let state = LockedValue(LatchState())
    private let hasOpened = ThreadSignal()

    package init() {}

    var count: Int { state.withLock { $0.bodies.count } }

    var isOpen: Bool { state.withLock { $0.isOpen } }

    package func open() {
        let bodies = state.withLock {
            $0.isOpen = true
            return $0.bodies.removeAll()
        }
        hasOpened.wakeAll()
        for body in bodies { body() }
    }

    /// Opens the latch if no bodies wait. Otherwise calls them on this thread, so that no other thread calls one at the
    /// same time.
    /// - Returns: true if the latch is open.
    func openUnlessWaiting() -> Bool {
        let bodies = state.withLock { state in
            state.isOpen = state.bodies.isEmpty
            return state.bodies.removeAll()
        }
        for body in bodies { body() }
        return bodies.isEmpty
    }

    package func wait() { state.wait(for: hasOpened) { $0.isOpen ? () : nil } }

    /// Calls `body` on the thread that opens the latch, or at once if the latch is open.
    /// - Returns: an identifier for `forget`.
    @discardableResult
    func whenOpen(_ body: @escaping @Sendable () -> Void) -> Int {
        let id = state.withLock { $0.isOpen ? 0 : $0.bodies.add(body) }
        if id == 0 { body() }
        return id
    }

    @discardableResult
    func forget(_ id: Int) -> Bool {
        // In a variable, so that the body is released after the lock.
        let removed = state.withLock { $0.bodies.remove(id) }
        return withExtendedLifetime(removed) { removed != nil }
    }
}
