import Reactor

/// What serves the connections of a listener: on the listener's own loop a `ConnectionTracker`, on others a `GroupServer`.
/// Called on the listener's thread.
protocol ConnectionServer: AnyObject {
    /// How many connections have a handler that has not finished.
    var activeCount: Int { get }
    /// How many have a handler that has finished, and a descriptor that is not closed yet.
    var lingeringCount: Int { get }
    /// How many are active or linger.
    var openCount: Int { get }

    /// Calls `body` with each connection, on the thread of its loop.
    func collect<Value: Sendable>(_ body: @escaping @Sendable (Connection) -> Value) -> Guarantee<[Value]>

    /// `listener` will accept connections.
    func begin(for listener: Listener)
    /// The listener has stopped accepting.
    func listenerDidClose()
    /// The listener is closed and the last connection has ended.
    func end()

    /// Ends idle connections, now and whenever one becomes idle.
    func drain(within deadline: Duration)
    /// Counts the connections of which nothing is left to do but to deliver, as far as that is known here.
    func noteDelivered()
    /// The deadline of the drain has been reached.
    func abortAll()
}

/// The object that a served connection retains until its descriptor is closed, and notifies of its progress: the
/// listener, if the listener's own loop serves the connection; otherwise the connection's transfer. Called on the
/// loop's thread.
protocol ConnectionKeeper: AnyObject {
    /// The handler has finished, but the descriptor is not closed yet: the connection no longer counts as active.
    func connectionDidBeginLingering()
    /// The descriptor is closed.
    func connectionDidEnd()
}
