import Glibc

/// A value of several threads behind a lock of pthread's: unlike `Mutex`, one that the thread sanitizer sees. For what is rarely
/// touched.
// @unchecked: the value is touched under the lock only, which is made for any thread.
package final class LockedValue<Value>: @unchecked Sendable {
    // Allocated, since its address must not change; freed in deinit.
    private let lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private var value: Value

    package init(_ value: Value) {
        self.value = value
        pthread_mutex_init(lock, nil)
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
