import Glibc

/// Marks the threads that belong to a `ThreadPool`.
enum PoolThread {
    /// Whether the calling thread belongs to a pool.
    static var isCurrent: Bool { pthread_getspecific(key) != nil }

    /// The address of the pool that the calling thread works for.
    static let key: pthread_key_t = {
        var key = pthread_key_t()
        pthread_key_create(&key, nil)
        return key
    }()
}
