import CLinux
import ReactorLibc

/// The process-wide locks. A fork takes all of them and releases them on both sides; otherwise a lock held by another
/// thread at that moment would stay locked in the child.
///
/// Invariant: while a thread holds one of these locks, it takes no other, does not fork, and calls no user code. So a
/// fork can take the locks in any order without a deadlock.
enum ForkLocks {
    private struct Node {
        let lock: UnsafeMutablePointer<pthread_mutex_t>
        let next: UnsafeMutablePointer<Node>?
    }

    // nonisolated(unsafe): the address never changes. Guards the fields below, and is held during a fork.
    nonisolated(unsafe) private static let guardian: UnsafeMutablePointer<pthread_mutex_t> = {
        let lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
        pthread_mutex_init(lock, nil)
        return lock
    }()
    // nonisolated(unsafe): accessed under `guardian` only.
    nonisolated(unsafe) private static var newest: UnsafeMutablePointer<Node>?
    nonisolated(unsafe) private static var maskBefore = sigset_t()

    /// Adds a lock, whose address must stay valid until the process ends.
    static func add(_ lock: UnsafeMutablePointer<pthread_mutex_t>) {
        ForkDetector.watch()
        let node = UnsafeMutablePointer<Node>.allocate(capacity: 1)
        pthread_mutex_lock(guardian)
        defer { pthread_mutex_unlock(guardian) }
        node.initialize(to: Node(lock: lock, next: newest))
        newest = node
    }

    /// Initializes the globals, since a child could not finish another thread's initialization.
    static func prepare() {
        pthread_mutex_lock(guardian)
        (newest, maskBefore) = (nil, sigset_t())
        pthread_mutex_unlock(guardian)
    }

    /// Takes all locks before a fork. Blocks signals, so that none reaches the child before it has set its actions.
    static func takeAll() {
        var all = sigset_t()
        var before = sigset_t()
        sigfillset(&all)
        pthread_sigmask(SIG_SETMASK, &all, &before)
        pthread_mutex_lock(guardian)
        maskBefore = before
        var next = newest
        while let node = next {
            pthread_mutex_lock(node.pointee.lock)
            next = node.pointee.next
        }
    }

    /// Called after a fork, on both sides; in the child, on the copy of the thread that took the locks.
    static func freeAll(then body: () -> Void = {}) {
        var next = newest
        while let node = next {
            pthread_mutex_unlock(node.pointee.lock)
            next = node.pointee.next
        }
        var before = maskBefore
        pthread_mutex_unlock(guardian)
        body()
        pthread_sigmask(SIG_SETMASK, &before, nil)
    }
}
