/// The system calls of the library, by name. They are the keys of the counters in `LoopMetrics`, and the origin
/// of a `SystemError`.
public enum SystemCall: String, CaseIterable, Hashable, Sendable, CustomStringConvertible {
    /// See `description`.
    case accept = "accept4", bind, changeMode = "chmod", close, connect, epollControl = "epoll_ctl"
    /// See `description`.
    case epollCreate = "epoll_create1", epollWait = "epoll_wait", eventCreate = "eventfd", fileControl = "fcntl"
    /// See `description`.
    case fileStatus = "fstat", getPeerName = "getpeername", getSocketName = "getsockname"
    /// See `description`.
    case getSocketOption = "getsockopt", ioControl = "ioctl", kill, linkStatus = "lstat", listen, lock = "flock"
    /// See `description`.
    case open, pidfdOpen = "pidfd_open", pipe = "pipe2", poll, read, receive = "recv"
    /// See `description`.
    case receiveMessages = "recvmmsg", rename, send, sendFile = "sendfile", sendMessages = "sendmmsg"
    /// See `description`.
    case sendVector = "sendmsg", setSocketOption = "setsockopt", shutdown, sigaction, socket
    /// See `description`.
    case socketPair = "socketpair", spawn = "posix_spawn", sync = "fsync", threadCreate = "pthread_create"
    /// See `description`.
    case timerCreate = "timerfd_create", timerSet = "timerfd_settime", unlink, waitid, write
    /// See `description`.
    case writeVector = "writev"

    /// The name of the call's man page.
    public var description: String { rawValue }

    /// The number of the case.
    // Sound, because an enum of cases without values is stored as their number.
    @inlinable @inline(__always) var number: Int { Int(unsafeBitCast(self, to: UInt8.self)) }
}
