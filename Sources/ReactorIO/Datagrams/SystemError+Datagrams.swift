import Reactor
import ReactorLibc

extension SystemError {
    /// For an error of a `DatagramSocket`: true if the socket lives on, since the error concerns one datagram, one call
    /// or a shortage, and the next call may succeed. False if each later call fails too: the socket is closed, its loop
    /// has ended, or its descriptor is no longer that socket.
    public var leavesSocketUsable: Bool { ![EBADF, ECANCELED, EFAULT, ENOTSOCK, ENOTCONN].contains(code) }
}
