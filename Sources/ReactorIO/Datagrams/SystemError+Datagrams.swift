import Reactor
import ReactorLibc

extension SystemError {
    /// True for an error of a `DatagramSocket` about one datagram, one call or a shortage, after which the next call
    /// may succeed. False if each later call fails too: the socket is closed, its loop has ended, or its descriptor is
    /// no longer that socket.
    public var leavesSocketUsable: Bool { ![EBADF, ECANCELED, EFAULT, ENOTSOCK, ENOTCONN].contains(code) }
}
