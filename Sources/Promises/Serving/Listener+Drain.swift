import Reactor

extension Listener {
    /// Ends the listener and its connections in an orderly way, within `deadline`: stops listening at once, closes the
    /// idle connections of `serve`, waits for the busy ones, and at the deadline aborts the remaining ones and cancels
    /// what their handlers wait for.
    ///
    /// A connection is *idle* while all of these hold:
    /// - it waits in a read, and no part of a frame has arrived, neither here nor in the kernel;
    /// - no write is queued;
    /// - its handler does not read ahead of its answers, as in a `pipe`, or in the forms of `forEachLine` and
    ///   `forEachChunk` that wait for nothing;
    /// - the body of a `forEachFrame`, `forEachLine` or `forEachChunk` waits for nothing: the promise that it has
    ///   returned has settled;
    /// - no `deferDrain(until:)` is pending. A handler that reads one request in several steps outside of such a loop
    ///   declares them by that: between two of them no part of a frame is buffered.
    ///
    /// As far as can be seen from here, its peer has been answered. It is closed at once, or within 20 ms of becoming
    /// idle; the waiting read fails with `ECANCELED`.
    ///
    /// Clients in the backlog are reset; to accept them, call `close(drain: true)` before. Connections that were taken
    /// with `accept` do not belong to the listener. A further call returns the same guarantee, and the first deadline
    /// stands.
    /// - Parameter deadline: the time that the busy connections have, from now on. In a further call it has no effect.
    /// - Returns: a guarantee that is fulfilled when the last connection has ended, with what became of the
    ///   connections.
    @discardableResult
    @available(*, noasync, message: "an async function has no loop of its own")
    public func drain(deadline: Duration) -> Guarantee<DrainResult> {
        if let drain { return drain.guarantee }
        let drain = ListenerDrain(openConnections, counters)
        self.drain = drain
        if !isClosed { end(nil) }
        tracker.drain()
        group?.drain()
        if openConnections == 0 {
            drain.finish(active: 0)
        } else {
            drain.start(loop.schedule(after: deadline) { [self] in abortAll(drain) })
        }
        return drain.guarantee
    }

    /// Ends a drain that has begun at once, as at its deadline: aborts the connections that remain, and cancels what their
    /// handlers wait for. Without effect if no drain has begun.
    public func abortDrain() {
        loop.assertOwner()
        if let drain { abortAll(drain) }
    }

    private func abortAll(_ drain: ListenerDrain) {
        // First the result: an aborted connection may be the last one, and a loop that does not respond must not delay
        // the result.
        drain.finish(active: openConnections)
        tracker.abortAll()
        group?.abortAll()
    }
}
