import Reactor

extension Connection {
    /// Fulfilled when the descriptor of the connection has been released, with the way in which the connection ended.
    /// `isClosed`, by contrast, is true from the call of `close` on. Use it to log a client's end and to release its
    /// state.
    ///
    /// ```swift
    /// let client = connection.description
    /// connection.closed.done { end in log("\(client): \(end)") }
    /// ```
    ///
    /// Every access returns the same promise. It does not retain the connection, does not keep the loop alive, and
    /// cannot be cancelled. It is fulfilled too when the last reference to the connection is released, on any thread. A
    /// connection that has failed keeps its descriptor until it is closed or released. A handler that uses the
    /// connection retains it.
    @available(*, noasync, message: "an async function has no loop of its own; use it before you await")
    public var closed: Guarantee<ConnectionEnd> {
        loop.assertOwner()
        guard lifecycle.hasDescriptor else { return .value(cold?.rare?.end ?? .closed) }
        let cold = ensuredColdState
        let core = cold.closed ?? .connectionEnd()
        cold.closed = core
        return Guarantee(core)
    }

    /// Records how the connection ends, unless a failure or an earlier call has decided that.
    func recordEnd(_ end: ConnectionEnd) {
        let rare = ensuredRareState
        if rare.end == nil { rare.end = failure.map(ConnectionEnd.failed) ?? end }
    }
}

extension PromiseCore {
    /// Once the loop has ended, any thread may release the connection, and settle this.
    fileprivate static func connectionEnd() -> PromiseCore {
        PromiseCore(
            state: .pending, loop: .ofThisThread, role: .externallySettled, code: .of(Follow<ConnectionEnd>.self))
    }
}
