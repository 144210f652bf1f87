import Glibc

/// A value that several threads share, protected by a pthread mutex: unlike `Mutex`, the thread sanitizer understands
/// it. For values that are rarely accessed.
// @unchecked: the value is accessed only under the lock, which is made for any thread.
package final class LockedValue<Value>: @unchecked Sendable {
    // Allocated, since its address must not change; freed in deinit.
    private let lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private var value: Value

    package init(_ value: Value) {
        self.value = value
        pthread_mutex_init(lock, nil)
    }

    /// A process-wide value, which is never freed: a forked child finds the lock free. For the rules, see `ForkLocks`.
    package static func ofProcess(_ value: Value) -> LockedValue {
        let made = LockedValue(value)
        ForkLocks.add(Unmanaged.passRetained(made).takeUnretainedValue().lock)
        return made
    }

    deinit {
        pthread_mutex_destroy(lock)
        lock.deallocate()
    }

    package func withLock<Result>(_ body: (inout Value) -> Result) -> Result {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        return body(&value)
    }
}
