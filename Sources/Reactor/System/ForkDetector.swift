import CLinux
import ReactorLibc

/// Distinguishes a forked child from its parent. They share the epoll descriptor, and one EPOLL_CTL_DEL in the child
/// would remove the parent's registration.
enum ForkDetector {
    private static let hook: Void = {
        ForkLocks.prepare()
        pthread_atfork({ ForkLocks.takeAll() }, { ForkLocks.freeAll() }) {
            clinux_note_fork()
            ForkLocks.freeAll { clinux_begin_in_forked_child() }
        }
    }()

    static func watch() { hook }

    /// A count that grows by one in each forked child.
    static var generation: CInt { clinux_forks() }
}

/// The process that made an object. A forked child learns from it that the object, and anything that the object opened
/// or started, belongs to the parent.
struct ForkMark {
    private let generation: CInt

    init() {
        ForkDetector.watch()
        generation = ForkDetector.generation
    }

    @inline(__always)
    var isForked: Bool { generation != ForkDetector.generation }
}
