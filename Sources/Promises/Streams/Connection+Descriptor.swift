import CLinux
import Glibc
import Reactor

// Making connections of descriptors, and detaching them.

extension Connection {
    /// Makes two connections that are each other's peers, both on this thread's loop: a socketpair(2).
    /// - Returns: both ends.
    /// - Throws: `SystemError` of socketpair(2): `EMFILE` or `ENFILE` without a free descriptor, `ENOMEM`.
    @available(*, noasync, message: "an async function has no loop of its own")
    public static func pair() throws(SystemError) -> (Connection, Connection) {
        let loop = EventLoop.ofCurrentThread
        let ends = try loop.kernel.socketPair()
        let make = { (fd: CInt) in
            loop.forget(fd)
            return Connection(fd, [.socket, .reads, .writes], peer: nil, on: loop)
        }
        return (make(ends.0), make(ends.1))
    }

    /// Makes a pipe(2) with both ends on this thread's loop: bytes that are written to `writer` arrive at `reader`.
    ///
    /// Each end has one direction; an operation in the other direction fails with `EBADF`. When the writer is closed,
    /// or has been shut down, the reader ends; a writer without a reader fails with `EPIPE`, and no signal is raised.
    /// - Returns: both ends.
    /// - Throws: `SystemError` of pipe(2): `EMFILE` or `ENFILE` without a free descriptor, `ENOMEM`.
    @available(*, noasync, message: "an async function has no loop of its own")
    public static func pipe() throws(SystemError) -> (reader: Connection, writer: Connection) {
        let loop = EventLoop.ofCurrentThread
        let ends = try loop.kernel.pipe()
        for fd in [ends.0, ends.1] { loop.forget(fd) }
        return (
            Connection(ends.0, .reads, peer: nil, on: loop), Connection(ends.1, .writes, peer: nil, on: loop)
        )
    }

    /// Makes a connection of an open descriptor, which the connection then owns: a connected stream socket, an end of a
    /// pipe or of a FIFO, or a device that epoll can watch, such as a terminal.
    ///
    /// It is set to close-on-exec and to non-blocking. Non-blocking is a property of the open file description, so it
    /// affects every copy of the descriptor, in other processes too: a shell's terminal is better not adopted.
    /// - Parameter fd: the descriptor.
    /// - Throws: `SystemError`, and then the caller still owns the descriptor, unchanged:
    ///   - `EINVAL` of `fstat` for a descriptor that is not a stream, with the reason: a regular file, a directory, a
    ///     datagram socket, a listening socket, a device that epoll cannot watch;
    ///   - `EBADF` for a number that is not a descriptor.
    @available(*, noasync, message: "an async function has no loop of its own")
    public convenience init(adopting fd: CInt) throws(SystemError) {
        let loop = EventLoop.ofCurrentThread
        let kernel = loop.kernel
        let traits = try Self.traits(of: fd, loop)
        let flags = try kernel.fileControl(fd, F_GETFL).orThrow(.fileControl, "descriptor \(fd)")
        _ = try kernel.fileControl(fd, F_SETFL, CInt(flags) | O_NONBLOCK).orThrow(.fileControl, "descriptor \(fd)")
        _ = try kernel.fileControl(fd, F_SETFD, FD_CLOEXEC).orThrow(.fileControl, "descriptor \(fd)")
        loop.forget(fd)
        let peer = traits.contains(.tcp) ? Socket(fd, kernel).peerAddress : nil
        self.init(fd, traits, peer: peer, on: loop)
    }

    /// Gives up the descriptor: the caller owns it from now on, open and non-blocking, and this connection is closed.
    /// Use it to pass the descriptor to another thread, where `init(adopting:)` makes a connection of it, or to another
    /// process.
    ///
    /// ```swift
    /// let descriptor = try connection.detach()
    /// if !worker.submit({ serve(try! Connection(adopting: descriptor)) }) { Glibc.close(descriptor) }
    /// ```
    ///
    /// No operation may be pending and no input buffered, since neither could be passed on. Input that is still in the
    /// kernel stays there for the new owner.
    /// - Returns: the descriptor, which the caller must close.
    /// - Throws: `SystemError` of `fcntl`, and then the connection is unchanged:
    ///   - `EBUSY` if a read or a write waits, if bytes were read beyond a frame, or if the connection has a filter,
    ///     whose state could not be passed on;
    ///   - `EBADF` if the connection is closed;
    ///   - the error of the connection if it has failed.
    public func detach() throws(SystemError) -> CInt {
        sendGathered()
        if let failure, lifecycle.isOpen { throw failure }
        guard lifecycle.isOpen else {
            throw SystemError(.fileControl, EBADF, detail: "detach: the connection is closed")
        }
        if cold?.filter != nil { throw SystemError(.fileControl, EBUSY, detail: "detach: the connection has a filter") }
        if !reader.isFree || writer.isQueued || hasInput {
            let reason = writer.isQueued ? "a write is pending" : hasInput ? "buffered input" : "a read is pending"
            throw SystemError(.fileControl, EBUSY, detail: "detach: \(reason)")
        }
        // As in `release`, but without closing. The number may belong to any code now, so it is never used again.
        _ = lifecycle.release()
        interest = []
        cancelTimers()
        loop.forget(fd)
        recordEnd(.detached)
        if watchedEnds != 0 {
            settlePeerWatches(as: .failed(SystemError(readCall, ECANCELED, detail: "the connection was detached")))
        }
        cold?.settleClosed(otherwise: .detached)
        return fd
    }

    // MARK: Kinds of descriptors

    /// What the descriptor is, with a filter or without.
    var kind: ConnectionTraits { traits.direct }

    var readCall: SystemCall { kind.contains(.socket) ? .receive : .read }
    var writeCall: SystemCall { kind.contains(.socket) ? .send : .write }

    private static func traits(of fd: CInt, _ loop: EventLoop) throws(SystemError) -> ConnectionTraits {
        func refuse(_ reason: String) -> SystemError {
            SystemError(.fileStatus, EINVAL, detail: "descriptor \(fd) is \(reason)")
        }
        let kernel = loop.kernel
        var status = stat()
        _ = try kernel.fileStatus(fd, &status).orThrow(.fileStatus, "descriptor \(fd)")
        switch status.st_mode & S_IFMT {
        case S_IFSOCK:
            func option(_ name: CInt) throws(SystemError) -> CInt {
                var value: CInt = 0
                _ = try kernel.getSocketOption(fd, SOL_SOCKET, name, &value).orThrow(.getSocketOption)
                return value
            }
            if try option(SO_TYPE) != CInt(clinux_SOCK_STREAM) { throw refuse("a socket that is not a stream") }
            if try option(SO_ACCEPTCONN) != 0 { throw refuse("a listening socket") }
            let isTCP = try option(SO_PROTOCOL) == CInt(IPPROTO_TCP)
            return isTCP ? [.tcp, .socket, .reads, .writes] : [.socket, .reads, .writes]
        case S_IFIFO: return try direction(of: fd, kernel)
        case S_IFCHR:
            // Only epoll knows whether it can watch a device.
            do throws(SystemError) { try loop.register(.reading, of: fd, handler: nil) } catch {
                throw error.code == EPERM ? refuse("a device that epoll cannot watch") : error
            }
            loop.forget(fd)
            return try direction(of: fd, kernel)
        case S_IFREG: throw refuse("a regular file")
        case S_IFDIR: throw refuse("a directory")
        case S_IFBLK: throw refuse("a block device")
        default: throw refuse("not a stream of bytes")
        }
    }

    private static func direction(of fd: CInt, _ kernel: CountingSyscalls) throws(SystemError) -> ConnectionTraits {
        let flags = CInt(try kernel.fileControl(fd, F_GETFL).orThrow(.fileControl, "descriptor \(fd)"))
        switch flags & CInt(clinux_O_ACCMODE) {
        case O_RDONLY: return .reads
        case O_WRONLY: return .writes
        default: return [.reads, .writes]
        }
    }
}
