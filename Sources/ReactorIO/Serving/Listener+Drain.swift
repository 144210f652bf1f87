import Promises
import Reactor

extension Listener {
    /// Ends the listener and its connections in an orderly way, within `deadline`: accepts the clients in the backlog,
    /// as `close(drain: true)`, stops listening, ends the idle connections of `serve`, waits for the busy ones, and at
    /// the deadline aborts the remaining ones and cancels the promises of their handlers. The backlog of an `inherited`
    /// listener is left to the next process.
    ///
    /// ```swift
    /// try nextSignal(SIGTERM).then { listener.drain(deadline: .seconds(10)) }.done { result in
    ///     print("aborted: \(result.aborted)")
    /// }
    /// ```
    ///
    /// How a connection ends:
    /// - `forEachFrame`, `forEachLine`, `lines` and `frames` end between two frames, as at the peer's end, and the
    ///   handler finishes: as soon as all that had arrived when the drain began has been read, and the answers have
    ///   left, those of bodies and those of `deferDrain`. What a client sends later is not read. A client that has sent
    ///   nothing has the time of the next case. If the bodies return no promise, the loop stops reading then, and ends
    ///   in the last fifth of the time;
    /// - other reads end when the connection is idle and has received nothing for 200 ms: the connection is closed, and
    ///   the read fails with `ECANCELED`;
    /// - in the last fifth of the time, at most one second, all reads end as soon as no answer is under way: loops
    ///   after the frame or chunk that they handle, and single reads, unless `deferDrain` has declared them as a part of
    ///   a request, when they begin;
    /// - at the deadline, connections that are idle or lingering are closed: the kernel delivers what it has taken. The
    ///   others are reset.
    ///
    /// A connection is *idle* while all of these hold:
    /// - it waits in a read, and no part of a frame has arrived, here or in the kernel;
    /// - no write is queued;
    /// - its handler does not read ahead of its answers, as in a `pipe`, or in the forms of `forEachFrame`,
    ///   `forEachLine` and `forEachChunk` that wait for nothing;
    /// - the promise returned by the body of a `forEachFrame`, `forEachLine` or `forEachChunk` has settled;
    /// - no `deferDrain(until:)` is pending. A handler that reads one request in several steps outside such a loop
    ///   declares them by that: between two of them no part of a frame is buffered.
    ///
    /// Handlers learn of the drain by `Connection.isDraining`, and of a loop that it has ended by `Connection.inputEnd`.
    ///
    /// A handler may call this, also one of a client in the backlog: the rest of the backlog is still accepted.
    /// Connections that were taken with `accept` do not belong to the listener. A further call returns the same
    /// guarantee, and the first deadline stands.
    /// - Parameter deadline: the time that the busy connections have, from now on. Ignored in further calls.
    /// - Returns: a guarantee that is fulfilled when the last connection has ended, with the counts of how they ended.
    @discardableResult
    @available(*, noasync, message: "on a loop write try await firstly { … }.value, else use a synchronous function")
    public func drain(deadline: Duration) -> Guarantee<DrainResult> {
        loop.assertOwner()
        let end = loop.now.advanced(by: deadline)
        change { $0.drain(until: end) }
        return drained.guarantee
    }

    /// Ends a drain at once, as at its deadline: aborts the remaining connections, and cancels the promises of their
    /// handlers. Without effect if no drain has begun.
    public func abortDrain() {
        loop.assertOwner()
        change { $0.abort() }
    }
}
