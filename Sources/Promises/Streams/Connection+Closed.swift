import Glibc
import Reactor

extension Connection {
    /// How the connection has ended, as soon as its descriptor has been released; `isClosed` is true from the call of `close`
    /// on. For accounts of a server's clients, and to release what belongs to one.
    ///
    /// ```swift
    /// let client = connection.description
    /// connection.closed.done { end in log("\(client): \(end)") }
    /// ```
    ///
    /// One promise for all who ask. It does not retain the connection, does not keep the loop alive, and cannot be cancelled;
    /// when the last reference to the connection is released, on any thread, it is fulfilled. A connection that has failed
    /// keeps its descriptor until it is closed or released. A handler that uses the connection does retain it.
    @available(*, noasync, message: "an async function has no loop of its own; use it before you await")
    public var closed: Guarantee<ConnectionEnd> {
        loop.assertOwner()
        guard lifecycle.hasDescriptor else { return .value(end) }
        let cold = makeColdState
        let core = cold.closed ?? PromiseCore(root: ConnectionEnd.self)
        cold.closed = core
        return Guarantee(core)
    }

    /// Notes how the connection ends, unless that follows from its failure, or was noted before.
    func noteEnd(_ end: ConnectionEnd) {
        let cold = makeColdState
        if cold.end == nil { cold.end = failure.map(ConnectionEnd.failed) ?? end }
    }

    private var end: ConnectionEnd { cold?.end ?? .closed }
}

extension Connection.ColdState {
    /// The descriptor has been released.
    func settleClosed(otherwise usual: ConnectionEnd) {
        let end = end ?? failure.map(ConnectionEnd.failed) ?? usual
        self.end = end
        guard let core = closed else { return }
        closed = nil
        core.fulfill(end)
    }
}
