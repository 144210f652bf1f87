import Glibc

/// Marks the threads that belong to a `ThreadPool`.
enum PoolThread {
    /// Whether the calling thread belongs to a pool.
    static var isCurrent: Bool { pthread_getspecific(key) != nil }

    /// Whether the calling thread belongs to `pool`.
    static func isCurrent(of pool: AnyObject) -> Bool {
        pthread_getspecific(key) == Unmanaged.passUnretained(pool).toOpaque()
    }

    /// The pool that the calling thread belongs to. Each of its threads retains it.
    static var workers: ThreadPoolWorkers? {
        pthread_getspecific(key).map { Unmanaged<ThreadPoolWorkers>.fromOpaque($0).takeUnretainedValue() }
    }

    /// Marks the calling thread as one that belongs to `pool`.
    static func begin(of pool: ThreadPoolWorkers) {
        pthread_setspecific(key, Unmanaged.passUnretained(pool).toOpaque())
    }

    /// The address of the pool that the calling thread works for.
    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        pthread_key_create(&key, nil)
        return key
    }()
}
