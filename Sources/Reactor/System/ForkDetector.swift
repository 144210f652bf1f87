import CLinux
import Glibc

/// Tells a process from the one that it was forked from: the child shares the parent's epoll descriptor, and a
/// single EPOLL_CTL_DEL in the child would take the parent's registration away.
enum ForkDetector {
    private static let hook: Void = { _ = pthread_atfork(nil, nil) { clinux_note_fork() } }()

    static func watch() { hook }

    /// Grows by one with each fork, in the child.
    static var generation: CInt { clinux_forks() }
}
