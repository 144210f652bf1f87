import Glibc

/// Which threads are those of a `ThreadPool`.
enum PoolThread {
    /// Whether the calling thread is a pool's.
    static var isCurrent: Bool { pthread_getspecific(key) != nil }

    /// Whether the calling thread is one of `pool`'s.
    static func isCurrent(of pool: AnyObject) -> Bool {
        pthread_getspecific(key) == Unmanaged.passUnretained(pool).toOpaque()
    }

    /// The calling thread is one of `pool`'s from now on.
    static func begin(of pool: AnyObject) { pthread_setspecific(key, Unmanaged.passUnretained(pool).toOpaque()) }

    /// The address of the pool that the calling thread works for. Only compared.
    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        pthread_key_create(&key, nil)
        return key
    }()
}
