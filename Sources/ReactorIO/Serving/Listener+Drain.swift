import Promises
import Reactor

extension Listener {
    /// Ends the listener and its connections in an orderly way. Like `close(drain: true)`, accepts the clients in the
    /// backlog and stops listening. Then ends the idle connections of `serve`, and waits for the busy ones. At the
    /// deadline, aborts the rest and cancels their handlers' promises. An `inherited` listener leaves its backlog to
    /// the next process.
    ///
    /// ```swift
    /// try nextSignal(SIGTERM).then { listener.drain(deadline: .seconds(10)) }.done { result in
    ///     print("aborted: \(result.aborted)")
    /// }
    /// ```
    ///
    /// A connection's end depends on its reads:
    /// - `forEachFrame`, `forEachLine`, `lines` and `frames` end between two frames, as if the peer had ended its side,
    ///   so the handler finishes. First they read everything that had arrived when the drain began, and send the
    ///   answers of closures and of `deferDrain`. A client that has sent nothing gets the 200 ms of the next case. If
    ///   the closures return no promise, the loop stops reading at that point, but ends only in the last fifth of the
    ///   time;
    /// - other reads end when the connection is idle and has received nothing for 200 ms: the connection is closed, and
    ///   the read fails with `ECANCELED`;
    /// - in the last fifth of the time, or its last second if shorter, all reads end as soon as no answer is
    ///   under way: read loops after the current frame or chunk, and single reads when they begin. Single reads that
    ///   `deferDrain` declares as part of a request continue;
    /// - at the deadline, idle and lingering connections are closed, and the kernel delivers the bytes that it has
    ///   accepted. All others are reset.
    ///
    /// A connection is *idle* while all of these hold:
    /// - it waits in a read, and no part of a frame has arrived, even in the kernel;
    /// - no write is queued;
    /// - its handler does not read ahead of its answers, as a `pipe` does, or the overloads of `forEachFrame`,
    ///   `forEachLine` and `forEachChunk` that wait for nothing;
    /// - the promise from the closure of a `forEachFrame`, `forEachLine` or `forEachChunk` has settled;
    /// - no `deferDrain(until:)` is pending. A handler that reads one request in several steps outside of a read loop
    ///   needs it, because between two steps no part of a frame is buffered.
    ///
    /// Handlers see the drain in `Connection.isDraining`, and the end of a read loop in `Connection.inputEnd`.
    ///
    /// A handler may call this, even one for a client from the backlog: the rest of the backlog is still accepted.
    /// Connections from `accept` do not belong to the listener. A further call returns the same guarantee, and the
    /// first deadline remains.
    /// - Parameter deadline: the time for busy connections, from now on.
    /// - Returns: a guarantee of the counts, fulfilled when the last connection has ended.
    @discardableResult
    @available(*, noasync, message: "on a loop write try await firstly { … }.value, else use a synchronous function")
    public func drain(deadline: Duration) -> Guarantee<DrainResult> {
        loop.assertOwner()
        let end = loop.now.advanced(by: deadline)
        change { $0.drain(until: end) }
        return drained.guarantee
    }

    /// Ends a drain at once, as at its deadline: aborts the remaining connections and cancels their handlers' promises.
    public func abortDrain() {
        loop.assertOwner()
        change { $0.abort() }
    }
}
