import Reactor
import ReactorLibc

extension SystemError {
    /// True for a `DatagramSocket`'s error about one datagram, one call or a shortage, after which the next call may
    /// succeed. False if all later calls fail too, because the socket is closed, its loop has ended, or the descriptor
    /// is no longer that socket's.
    public var leavesSocketUsable: Bool { ![EBADF, ECANCELED, EFAULT, ENOTSOCK, ENOTCONN].contains(code) }
}
