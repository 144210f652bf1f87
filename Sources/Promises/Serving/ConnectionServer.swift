/// Serves the connections of a listener: a `ConnectionTracker` on the listener's own loop, or a `GroupServer` on
/// others. Called on the listener's thread.
protocol ConnectionServer: AnyObject {
    /// The number of connections whose handlers have not finished, and of those whose handlers have finished and whose
    /// descriptors are not closed yet.
    var open: (active: Int, lingering: Int) { get }

    /// Calls `body` with each connection, on the thread of its loop.
    func collect<Value: Sendable>(_ body: @escaping @Sendable (Connection) -> Value) -> Guarantee<[Value]>

    /// The listener has stopped accepting.
    func listenerDidClose()
    /// The listener is closed and the last connection has ended, or the listener's loop ends.
    func end()

    /// Ends idle connections, now and whenever one becomes idle.
    func drain(within time: Duration)
    /// Counts connections with nothing left to do but deliver, as far as that is known here.
    func noteDelivered()
    /// The deadline of the drain has been reached.
    func abortAll()
}

/// Retained by a served connection until its descriptor is closed, and notified of its progress: the listener, if the
/// listener's own loop serves the connection; otherwise the connection's transfer. Called on the loop's thread.
protocol ConnectionKeeper: AnyObject {
    /// The handler has finished, but the descriptor is not closed yet: the connection no longer counts as active.
    func connectionDidBeginLingering()
    /// The descriptor is closed.
    func connectionDidClose()
}
