/// The system calls of the library, by name. They are the keys of the counters in `LoopMetrics`, and the origin
/// of a `SystemError`.
public enum SystemCall: UInt8, CaseIterable, Hashable, Sendable, CustomStringConvertible {
    /// See `description`.
    case accept, bind, changeMode, close, connect, epollControl, epollCreate, epollWait, eventCreate
    /// See `description`.
    case fileControl, fileStatus, getPeerName, getSocketName, getSocketOption, ioControl, kill, linkStatus, listen
    /// See `description`.
    case lock, open, pidfdOpen, pipe, poll, read, receive, receiveMessages, rename, send, sendFile, sendMessages
    /// See `description`.
    case sendVector, setSocketOption, shutdown, sigaction, socket, socketPair, spawn, sync, threadCreate, timerCreate
    /// See `description`.
    case timerSet, unlink, waitid, write, writeVector

    /// The name of the call's man page.
    public var description: String {
        switch self {
        case .accept: "accept4"
        case .bind: "bind"
        case .changeMode: "chmod"
        case .close: "close"
        case .connect: "connect"
        case .epollControl: "epoll_ctl"
        case .epollCreate: "epoll_create1"
        case .epollWait: "epoll_wait"
        case .eventCreate: "eventfd"
        case .fileControl: "fcntl"
        case .fileStatus: "fstat"
        case .getPeerName: "getpeername"
        case .getSocketName: "getsockname"
        case .getSocketOption: "getsockopt"
        case .ioControl: "ioctl"
        case .kill: "kill"
        case .linkStatus: "lstat"
        case .listen: "listen"
        case .lock: "flock"
        case .open: "open"
        case .pidfdOpen: "pidfd_open"
        case .pipe: "pipe2"
        case .poll: "poll"
        case .read: "read"
        case .receive: "recv"
        case .rename: "rename"
        case .send: "send"
        case .sendFile: "sendfile"
        case .sendVector: "sendmsg"
        case .receiveMessages: "recvmmsg"
        case .sendMessages: "sendmmsg"
        case .setSocketOption: "setsockopt"
        case .shutdown: "shutdown"
        case .sigaction: "sigaction"
        case .socket: "socket"
        case .socketPair: "socketpair"
        case .spawn: "posix_spawn"
        case .sync: "fsync"
        case .threadCreate: "pthread_create"
        case .timerCreate: "timerfd_create"
        case .timerSet: "timerfd_settime"
        case .unlink: "unlink"
        case .waitid: "waitid"
        case .write: "write"
        case .writeVector: "writev"
        }
    }
}
