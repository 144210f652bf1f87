import Glibc

/// A value for several threads.
// @unchecked Sendable: the value is accessed under the lock only.
package final class Shared<Value: Sendable>: @unchecked Sendable {
    // A pthread lock, not a Mutex, since ThreadSanitizer sees only the former. Allocated, since its address must not
    // change.
    private let lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private var content: Value

    package init(_ value: Value) {
        content = value
        pthread_mutex_init(lock, nil)
    }

    deinit {
        pthread_mutex_destroy(lock)
        lock.deallocate()
    }

    package var value: Value {
        get { change { $0 } }
        set { change { $0 = newValue } }
    }

    @discardableResult
    package func change<Result: Sendable>(_ body: @Sendable (inout Value) -> Result) -> Result {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        return body(&content)
    }
}
