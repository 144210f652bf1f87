import Reactor

extension LoopLocal {
    /// Returns the value for the event loop of `connection`, which must be this thread's. The loop's connections share
    /// it. Made at first use.
    ///
    /// ```swift
    /// let counters = LoopLocal { Counters() }
    /// listener.serve(on: group) { connection in
    ///     let counters = counters.value(for: connection)
    ///     return connection.forEachLine { line in
    ///         counters.lines += 1
    ///         return connection.write(line + "\n")
    ///     }
    /// }
    /// ```
    ///
    /// The compiler prevents sending the value or the connection to another thread.
    @inlinable
    public func value(for connection: Connection) -> Value {
        if let known = known(to: connection) { return value(in: known) }
        return makeValue(for: connection)
    }

    @usableFromInline
    func known(to connection: Connection) -> Unmanaged<LoopLocalValue>? {
        connection.loop.assertOwner()
        return connection.loop.local(number)
    }

    @usableFromInline
    func makeValue(for connection: Connection) -> Value { makeValue(on: connection.loop) }
}
