/// The system calls that the library makes, by name: the key of the counters in `EventLoop.Metrics` and the
/// origin of a `SystemError`.
public enum SystemCall: UInt8, CaseIterable, Hashable, Sendable, CustomStringConvertible {
    case accept, bind, close, connect, epollControl, epollCreate, epollWait, eventCreate, eventRead
    case fileControl, fileStatus, getPeerName, getSocketName, getSocketOption, listen, pipe, read, receive, send
    case sendVector, setSocketOption, shutdown, sigaction, socket, socketPair, threadCreate, timerCreate, timerSet
    case write, writeVector

    /// The name of the call's man page.
    public var description: String {
        switch self {
        case .accept: "accept4"
        case .bind: "bind"
        case .close: "close"
        case .connect: "connect"
        case .epollControl: "epoll_ctl"
        case .epollCreate: "epoll_create1"
        case .epollWait: "epoll_wait"
        case .eventCreate: "eventfd"
        case .eventRead: "read(eventfd)"
        case .fileControl: "fcntl"
        case .fileStatus: "fstat"
        case .getPeerName: "getpeername"
        case .getSocketName: "getsockname"
        case .getSocketOption: "getsockopt"
        case .listen: "listen"
        case .pipe: "pipe2"
        case .read: "read"
        case .receive: "recv"
        case .send: "send"
        case .sendVector: "sendmsg"
        case .setSocketOption: "setsockopt"
        case .shutdown: "shutdown"
        case .sigaction: "sigaction"
        case .socket: "socket"
        case .socketPair: "socketpair"
        case .threadCreate: "pthread_create"
        case .timerCreate: "timerfd_create"
        case .timerSet: "timerfd_settime"
        case .write: "write"
        case .writeVector: "writev"
        }
    }
}
