import Promises
import Reactor

extension Listener {
    /// Ends the listener and its connections in an orderly way. It accepts the clients in the backlog, like
    /// `close(drain: true)`, stops listening, ends the idle connections of `serve`, and waits for the busy ones. At the
    /// deadline it aborts the rest and cancels their handlers' promises. An `inherited` listener leaves its backlog to
    /// the next process.
    ///
    /// ```swift
    /// try nextSignal(SIGTERM).then { listener.drain(deadline: .seconds(10)) }.done { result in
    ///     print("aborted: \(result.aborted)")
    /// }
    /// ```
    ///
    /// The ends of connections:
    /// - `forEachFrame`, `forEachLine`, `lines` and `frames` end between two frames, as at the peer's end, and the
    ///   handler finishes, once they have read everything that had arrived when the drain began, and the answers of
    ///   bodies and of `deferDrain` have left. A client that has sent nothing has the time of the next case. If the
    ///   bodies return no promise, the loop stops reading then, and ends in the last fifth of the time;
    /// - other reads end when the connection is idle and has received nothing for 200 ms: the connection is closed, and
    ///   the read fails with `ECANCELED`;
    /// - in the last fifth of the time, at most one second, all reads end as soon as no answer is under way: loops
    ///   after the current frame or chunk, and single reads at their beginning, unless `deferDrain` has declared them
    ///   as part of a request;
    /// - at the deadline, idle or lingering connections are closed, and the kernel delivers what it has taken. The
    ///   others are reset.
    ///
    /// A connection is *idle* while all of these hold:
    /// - it waits in a read, and no part of a frame has arrived, here or in the kernel;
    /// - no write is queued;
    /// - its handler does not read ahead of its answers, as in a `pipe`, or in the forms of `forEachFrame`,
    ///   `forEachLine` and `forEachChunk` that wait for nothing;
    /// - the promise of the body of a `forEachFrame`, `forEachLine` or `forEachChunk` has settled;
    /// - no `deferDrain(until:)` is pending. A handler that reads one request in several steps outside of a loop
    ///   declares them with it, because no part of a frame is buffered between two steps.
    ///
    /// Handlers see the drain in `Connection.isDraining`, and a loop that it has ended in `Connection.inputEnd`.
    ///
    /// A handler may call this, even for a client in the backlog: the rest of the backlog is still accepted.
    /// Connections from `accept` do not belong to the listener. A further call returns the same guarantee, with the
    /// first deadline.
    /// - Parameter deadline: the time that busy connections have, from now on.
    /// - Returns: a guarantee of the counts of the connections' ends, fulfilled when the last has ended.
    @discardableResult
    @available(*, noasync, message: "on a loop write try await firstly { … }.value, else use a synchronous function")
    public func drain(deadline: Duration) -> Guarantee<DrainResult> {
        loop.assertOwner()
        let end = loop.now.advanced(by: deadline)
        change { $0.drain(until: end) }
        return drained.guarantee
    }

    /// Ends a drain at once, as at its deadline: aborts the remaining connections, and cancels their handlers'
    /// promises.
    public func abortDrain() {
        loop.assertOwner()
        change { $0.abort() }
    }
}
