import Promises
import Reactor
import ReactorLibc

extension Connection {
    /// Makes two connections on this thread's loop that are each other's peers.
    /// - Throws: `SystemError` from socketpair(2): `EMFILE` or `ENFILE` if no descriptor is free, `ENOMEM`.
    @available(*, noasync, message: "call it in a synchronous function on the loop's thread")
    public static func pair() throws(SystemError) -> (Connection, Connection) {
        let loop = EventLoop.ofCurrentThread
        let ends = try loop.kernel.socketPair()
        let make = { (fd: CInt) in
            loop.forget(fd)
            return Connection(fd, .localSocket, peer: nil, on: loop)
        }
        return (make(ends.0), make(ends.1))
    }

    /// Makes a pipe(2) with both ends on this thread's loop.
    ///
    /// An operation in the wrong direction fails with `EBADF`. Closing or shutting down the writer ends the reader's
    /// stream. Writes without a reader fail with `EPIPE`, without a signal.
    /// - Throws: `SystemError` from pipe(2): `EMFILE` or `ENFILE` if no descriptor is free, `ENOMEM`.
    @available(*, noasync, message: "call it in a synchronous function on the loop's thread")
    public static func pipe() throws(SystemError) -> (reader: Connection, writer: Connection) {
        let loop = EventLoop.ofCurrentThread
        let ends = try loop.kernel.pipe()
        for fd in [ends.0, ends.1] { loop.forget(fd) }
        return (
            Connection(ends.0, .reads, peer: nil, on: loop), Connection(ends.1, .writes, peer: nil, on: loop)
        )
    }

    /// Makes a connection that takes over an open descriptor: a connected stream socket, an end of a pipe or of a FIFO,
    /// or a device that epoll can watch, such as a terminal.
    ///
    /// Sets the descriptor to close-on-exec and non-blocking. The latter affects every copy of the descriptor, even in
    /// other processes: do not adopt a shell's terminal.
    /// - Throws: `SystemError`. The caller then still owns the descriptor, unchanged:
    ///   - `EINVAL`, from `fstat` and with the reason, if the descriptor is not a stream: a regular file, a directory,
    ///     a datagram socket, a listening socket, a device that epoll cannot watch;
    ///   - `EBADF` if `fd` is not open;
    ///   - `EEXIST`, from `epoll_ctl`, if this loop already watches the descriptor for any owner.
    @available(*, noasync, message: "call it in a synchronous function on the loop's thread")
    public convenience init(adopting fd: CInt) throws(SystemError) {
        let loop = EventLoop.ofCurrentThread
        try loop.takeOver(fd)
        let kind = try DescriptorKind.prepare(fd, on: loop)
        let peer = kind.contains(.tcp) ? Socket(fd, loop.kernel).peerAddress : nil
        self.init(fd, kind, peer: peer, on: loop)
    }

    /// Closes this connection but leaves the descriptor open and non-blocking. The caller may pass it to another
    /// thread, which adopts it with `init(adopting:)`, or to another process.
    ///
    /// ```swift
    /// let descriptor = try connection.detach()
    /// if !worker.submit({ serve(try! Connection(adopting: descriptor)) }) { Glibc.close(descriptor) }
    /// ```
    ///
    /// No operation may be pending and no input buffered, since neither can be passed on. Input in the kernel stays
    /// there.
    /// - Returns: the descriptor, which the caller must close.
    /// - Throws: `SystemError`, from `fcntl`. The connection is then unchanged:
    ///   - `EBUSY` if a read or a write is pending, if bytes were read beyond a frame, or if the connection has a
    ///     filter;
    ///   - `EBADF` if the connection is closed;
    ///   - the error of a failed connection.
    public func detach() throws(SystemError) -> CInt {
        loop.assertOwner()
        sendGathered()
        if let failure, lifecycle.isOpenOrFailed { throw failure }
        guard lifecycle.isOpenOrFailed else {
            throw SystemError(.fileControl, EBADF, detail: "detach: the connection is closed")
        }
        let reasons = [
            (cold?.filter != nil, "the connection has a filter"), (writer.isQueued, "a write is pending"),
            (hasInput, "buffered input"), (!reader.isFree, "a read is pending"),
        ]
        if let (_, reason) = reasons.first(where: \.0) {
            throw SystemError(.fileControl, EBUSY, detail: "detach: \(reason)")
        }
        recordEnd(.detached)
        release(givingAway: true)
        return fd
    }
}
