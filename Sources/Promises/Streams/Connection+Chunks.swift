extension Connection {
    /// Calls `body` with each piece of input until the peer ends. The fastest way to read.
    ///
    /// ```swift
    /// connection.forEachChunk { connection.write($0) }
    /// ```
    ///
    /// A chunk is lent to `body`: it lies in a buffer of the loop, is at most 64 KiB, and is not copied. In the steady
    /// state a message costs no allocation. The promise that `body` returns is the backpressure: reading continues when
    /// it is fulfilled. If it is fulfilled already, as with most writes, it costs nothing. `body` is called by this
    /// thread's loop, never inside this call. There is one call per turn, so that a flood of input leaves the
    /// other connections their turns.
    ///
    /// Cancelling the returned promise ends the reading: nothing more is read, and a promise that it waits for is
    /// cancelled if it has no other waiters. Until it has settled, other reads are refused with `EBUSY`. `body` may end
    /// the reading with `StopReading`.
    /// - Parameter body: called with each chunk. The span is valid during the call only.
    /// - Returns: a promise that is fulfilled at the peer's end, and rejected with
    ///   - the `SystemError` that `receive` would report;
    ///   - the error that `body` throws;
    ///   - the error of the promise that `body` has returned.
    @available(*, noasync, message: "no loop runs the handler in an async function")
    @inlinable
    public func forEachChunk<Value>(
        _ body: @escaping (RawSpan) throws -> Promise<Value>, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> {
        let core = startChunks(readsAhead: false, PromiseBody(body).core)
        return Promise(core.traced(root: "forEachChunk", Promise<Void>.self, file, line))
    }

    // A form of its own: `Void` cannot be a promise, and this one reads ahead.
    /// Calls `body` with each piece of input until the peer ends, and reads on without waiting for anything else; see
    /// the form with promises.
    @available(*, noasync, message: "no loop runs the handler in an async function")
    @inlinable
    public func forEachChunk(
        _ body: @escaping (RawSpan) throws -> Void, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> {
        let body = CoreBody { chunk in
            try body(chunk)
            return PromiseCore.void
        }
        let core = startChunks(readsAhead: true, body)
        return Promise(core.traced(root: "forEachChunk", Promise<Void>.self, file, line))
    }
}
