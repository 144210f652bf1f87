import Promises
import Reactor
import ReactorLibc

// The three calls that end a connection. In a forked child, `close` and `abort` only close the child's copy of the
// descriptor, and the connection continues in the parent.

extension Connection {
    // MARK: Half-close

    /// Ends the write side: the peer reads everything that was queued and then the end of the stream. See shutdown(2),
    /// SHUT_WR.
    ///
    /// ```swift
    /// connection.write(request)
    ///     .then { connection.shutdownWrite() }       // the peer sees the end of the request
    ///     .then { connection.receive() }
    /// ```
    ///
    /// On a pipe's writer, closes the descriptor, which ends the pipe.
    /// - Returns: a promise that is fulfilled when the end has been passed to the kernel. A further call returns an
    ///   equivalent promise. Rejected with a `SystemError`:
    ///   - `ENOTSOCK` for a descriptor that reads and writes but is not a socket, such as a terminal;
    ///   - `EBADF` on a pipe's reader, and once the connection is closed;
    ///   - `EPERM` in a forked child;
    ///   - the error of a failed connection.
    @discardableResult
    @inlinable @inline(__always)
    public func shutdownWrite(file: StaticString = #fileID, line: UInt = #line) -> Promise<Void> {
        Promise(startShutdown().core.traced(root: "shutdownWrite", Promise<Void>.self, file, line))
    }

    // MARK: Orderly close

    /// Delivers the queued writes and then the end of the stream, and closes the descriptor.
    ///
    /// ```swift
    /// connection.write(answer).ensure { connection.close() }
    /// ```
    ///
    /// A pending read fails with `ECANCELED`, which counts as a cancellation. Later operations fail with `EBADF`.
    /// Further input is read and discarded until the peer ends its side too: closing a socket with unread input makes
    /// the kernel send a reset, which destroys data that the peer has not read.
    ///
    /// Whatever the peer does, the descriptor is closed
    /// - 30 seconds after the call;
    /// - after 5 seconds in which the peer has taken and sent less than 5 KiB in total, since an occasional byte is not
    ///   progress.
    ///
    /// The kernel still delivers what it has taken. If writes are waiting, they are rejected with `ECANCELED`, and the
    /// connection is reset. For an answer that takes longer, wait for its write before `close`, or pass a `time`.
    ///
    /// A pipe is closed as soon as everything is written. Its only limit is 5 seconds in which the reader, a program on
    /// this machine, takes nothing.
    ///
    /// A `time` replaces these limits, even for a pipe: the connection is closed within it, without a need for
    /// progress. Zero or less waits for nothing: what the kernel accepts at once is sent, and up to 1 MiB of arrived
    /// input is discarded. If that was not everything, the connection is aborted.
    ///
    /// A further call returns a guarantee of the same end, and its `time`, if any, replaces the first call's limits.
    /// - Parameter time: the limit for the queued writes and the peer's end; `nil` for the limits above.
    /// - Returns: a guarantee that is fulfilled when the descriptor is closed.
    @discardableResult
    @inlinable @inline(__always)
    public func close(
        linger time: Duration? = nil, file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<Void> {
        Guarantee(ConnectionClose.start(time, of: self).core.traced(root: "close", Guarantee<Void>.self, file, line))
    }

    // MARK: Abort

    /// Drops everything and resets the connection: the peer's reads fail with `ECONNRESET`, or end on a pipe or a Unix
    /// socket. Pending operations fail with `ECANCELED`, which counts as a cancellation: see `Error.isCancelled`.
    ///
    /// ```swift
    /// let half = pipe(from: source, to: sink)
    /// half.tapError { _ in sink.abort() }            // half a file must not look like a whole one
    /// ```
    public func abort() {
        loop.assertOwner()
        let attachment = lifecycle.hasDescriptor ? cold?.attachment : nil
        dropAndReset()
        attachment?.connectionWasAborted()
    }

    /// Aborts for the program, or for a close at its limit, in which case no async handler is cancelled.
    /// - Parameter atLimit: true for a close at its limit, which resets only if written bytes are queued.
    func dropAndReset(atLimit: Bool = false) {
        guard lifecycle.hasDescriptor else {
            lifecycle = .closed
            return
        }
        recordEnd(.aborted)
        noteFailure(SystemError(ended: writeCall, isCancellation: !atLimit, detail: "the connection was aborted"))
        // In a forked child a reset is refused, because the parent shares the socket.
        failWrites(losesOutput: !atLimit)
        release()
    }

    // MARK: The end

    /// A guarantee of the connection's end, fulfilled when the descriptor has been released. Use it to log a client's
    /// end and release its state. (`isClosed` is already true once `close` is called.)
    ///
    /// ```swift
    /// let client = connection.description
    /// connection.closed.done { end in log("\(client): \(end)") }
    /// ```
    ///
    /// Every access returns the same promise. It does not retain the connection, does not keep the event loop alive,
    /// and cannot be cancelled. Releasing the last reference to the connection, on any thread, also fulfills it. A
    /// failed connection keeps its descriptor until you close or release it. A handler that uses the connection retains
    /// it.
    @available(*, noasync, message: "an async function has no loop of its own; use it before you await")
    public var closed: Guarantee<ConnectionEnd> {
        loop.assertOwner()
        guard lifecycle.hasDescriptor else { return .value(cold?.rare?.end ?? .closed) }
        let cold = ensuredColdState
        // Externally settled: once the loop has ended, any thread may release the connection, and so settle this.
        let core = cold.closed ?? PromiseCore(externallySettled: ConnectionEnd.self)
        cold.closed = core
        return Guarantee(core)
    }

    /// Records how the connection ends. An earlier call or failure takes precedence.
    func recordEnd(_ end: ConnectionEnd) {
        let rare = ensuredRareState
        if rare.end == nil { rare.end = failure.map(ConnectionEnd.failed) ?? end }
    }
}
