import Glibc

/// A one-shot event, opened once; threads and closures wait for it.
// @unchecked: the fields are accessed only under the lock; lock and condition are made for any thread.
final class Latch: @unchecked Sendable {
    private var isOpened = false
    private var bodies = NumberedList<@Sendable () -> Void>()
    // Allocated, since their addresses must not change; freed in deinit.
    private let lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let hasOpened = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

    init() {
        pthread_mutex_init(lock, nil)
        pthread_cond_init(hasOpened, nil)
    }

    deinit {
        pthread_cond_destroy(hasOpened)
        pthread_mutex_destroy(lock)
        hasOpened.deallocate()
        lock.deallocate()
    }

    private func locked<Value>(_ body: () -> Value) -> Value {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        return body()
    }

    /// The number of waiting closures.
    var count: Int { locked { bodies.count } }

    var isOpen: Bool { locked { isOpened } }

    func open() {
        let bodies = locked {
            isOpened = true
            pthread_cond_broadcast(hasOpened)
            return self.bodies.removeAll()
        }
        for body in bodies { body() }
    }

    func wait() {
        locked { while !isOpened { pthread_cond_wait(hasOpened, lock) } }
    }

    /// Calls `body` on the thread that opens the latch, or at once if the latch is open already.
    /// - Returns: an identifier for `forget`.
    @discardableResult
    func whenOpen(_ body: @escaping @Sendable () -> Void) -> Int {
        let id = locked { isOpened ? 0 : bodies.add(body) }
        if id == 0 { body() }
        return id
    }

    /// Releases the waiting body for which `whenOpen` returned `id`, if it is still there.
    @discardableResult
    func forget(_ id: Int) -> Bool {
        // Bound to a name, so that the body is released after the lock.
        let removed = locked { bodies.remove(id) }
        return withExtendedLifetime(removed) { removed != nil }
    }
}
