/// The library's system calls by name: keys for the counters in `LoopMetrics`, and the source of a `SystemError`.
public enum SystemCall: String, CaseIterable, Hashable, Sendable, CustomStringConvertible {
    /// See `description`.
    case
        accept = "accept4", bind, changeMode = "chmod", close, connect, epollControl = "epoll_ctl",
        epollCreate = "epoll_create1", epollWait = "epoll_wait", eventCreate = "eventfd", fileControl = "fcntl",
        fileStatus = "fstat", getPeerName = "getpeername", getSocketName = "getsockname",
        getSocketOption = "getsockopt", ioControl = "ioctl", kill, linkStatus = "lstat", listen, lock = "flock", open,
        pidfdOpen = "pidfd_open", pipe = "pipe2", poll, read, receive = "recv", receiveMessages = "recvmmsg", rename,
        send, sendFile = "sendfile", sendMessages = "sendmmsg", sendVector = "sendmsg",
        setSocketOption = "setsockopt", shutdown, sigaction, socket, socketPair = "socketpair", spawn = "posix_spawn",
        sync = "fsync", threadCreate = "pthread_create", timerCreate = "timerfd_create", timerSet = "timerfd_settime",
        unlink, waitid, write, writeVector = "writev"

    /// The name of the call's man page.
    public var description: String { rawValue }

    // Sound: an enum whose cases have no values is stored as the case's number.
    @inlinable @inline(__always) var number: Int { Int(unsafeBitCast(self, to: UInt8.self)) }
}
