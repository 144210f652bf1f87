import Glibc

/// Marks the threads that belong to a `ThreadPool`.
enum PoolThread {
    /// Whether the calling thread belongs to a pool.
    static var isCurrent: Bool { pthread_getspecific(key) != nil }

    /// Whether the calling thread belongs to `pool`.
    static func isCurrent(of pool: AnyObject) -> Bool {
        pthread_getspecific(key) == Unmanaged.passUnretained(pool).toOpaque()
    }

    /// Marks the calling thread as one that belongs to `pool`.
    static func begin(of pool: AnyObject) { pthread_setspecific(key, Unmanaged.passUnretained(pool).toOpaque()) }

    /// The address of the pool that the calling thread works for. It is compared, never dereferenced.
    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        pthread_key_create(&key, nil)
        return key
    }()
}
