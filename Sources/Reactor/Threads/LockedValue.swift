import ReactorLibc

/// A shared, rarely accessed value under a pthread mutex, which the thread sanitizer understands, unlike `Mutex`.
// @unchecked: the value is accessed only under the lock, which any thread may take.
package final class LockedValue<Value: ~Copyable>: @unchecked Sendable {
    // Allocated for a stable address; freed in deinit.
    private let lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private var value: Value

    package init(_ value: consuming Value) {
        self.value = value
        pthread_mutex_init(lock, nil)
    }

    /// Creates a process-wide value, which is never freed. A forked child finds the lock free; see the rules in
    /// `ForkLocks`.
    package static func ofProcess(_ value: consuming Value) -> LockedValue {
        let made = LockedValue(value)
        ForkLocks.add(Unmanaged.passRetained(made).takeUnretainedValue().lock)
        return made
    }

    deinit {
        pthread_mutex_destroy(lock)
        lock.deallocate()
    }

    package func withLock<Result, Failure: Error>(_ body: (inout Value) throws(Failure) -> Result) throws(Failure)
        -> Result
    {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        return try body(&value)
    }

    /// Calls `body` under the lock, and again after each signal from `change`, until `body` returns a value.
    func wait<Result>(for change: ThreadSignal, _ body: (inout Value) -> Result?) -> Result {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        while true {
            // A separate access per call: within one access, the compiler may assume that no other thread changes the
            // value, and not reload it after the wait.
            if let result = body(&value) { return result }
            change.wait(lock)
        }
    }
}

/// Wakes threads that wait for a change of a `LockedValue`.
// @unchecked: any thread may use the condition.
final class ThreadSignal: @unchecked Sendable {
    // Allocated for a stable address; freed in deinit.
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

    init() { pthread_cond_init(condition, nil) }

    deinit {
        pthread_cond_destroy(condition)
        condition.deallocate()
    }

    fileprivate func wait(_ lock: UnsafeMutablePointer<pthread_mutex_t>) { pthread_cond_wait(condition, lock) }

    func wakeOne() { pthread_cond_signal(condition) }
    func wakeAll() { pthread_cond_broadcast(condition) }
}
