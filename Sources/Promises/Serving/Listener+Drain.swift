import Reactor

extension Listener {
    /// Ends it all in order, within `deadline`: stops listening at once, closes the connections of `serve` that are idle, lets
    /// the busy ones finish, and aborts at the deadline what is still there.
    ///
    /// *Idle* is a connection that waits in a read, of which no part of a frame has come, neither here nor to the kernel, and
    /// that has nothing queued: its peer has been answered as far as can be seen from here. It is closed at once, or within 20 ms of becoming so; the
    /// waiting read fails with `ECANCELED`. A connection is never idle whose handler reads on while answers are under way: in
    /// a `pipe`, or by the forms of `forEachLine` and `forEachChunk` that wait for nothing; nor one that is `busy`. At the
    /// deadline the rest are aborted and what their handlers wait for is cancelled. Clients in the backlog
    /// are reset; to take them, call `close(drain: true)` before.
    ///
    /// Connections that were taken with `accept` are not the listener's. Again: the same guarantee, and the first deadline
    /// stands.
    @discardableResult
    @available(*, noasync, message: "an async function has no loop of its own")
    public func drain(deadline: Duration) -> Guarantee<DrainResult> {
        if let drain { return drain.guarantee }
        let drain = ListenerDrain(openConnections, account)
        self.drain = drain
        if !isClosed { end(nil) }
        branch.drain()
        group?.drain()
        if openConnections == 0 {
            drain.finish(active: 0)
        } else {
            drain.start(loop.schedule(after: deadline) { [self] in abortAll(drain) })
        }
        return drain.guarantee
    }

    private func abortAll(_ drain: ListenerDrain) {
        // Before: whoever is aborted may be the last. And a loop that does not answer must not delay it.
        drain.finish(active: openConnections)
        branch.abortAll()
        group?.abortAll()
    }
}
