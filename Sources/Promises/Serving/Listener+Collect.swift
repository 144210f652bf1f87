import Reactor

extension Listener {
    /// Calls `body` with each connection of `serve`, on the thread of its loop, and gathers the results.
    ///
    /// ```swift
    /// listener.collect { connection in
    ///     (client: connection.peerAddress, received: connection.bytesReceived, sent: connection.bytesSent)
    /// }.done { clients in
    ///     for (client, received, sent) in clients { print(client.map { "\($0)" } ?? "?", received, sent) }
    /// }
    /// ```
    ///
    /// For programs that list their clients, or end some of them: `body` may call the connection. Lingering connections
    /// are included; connections of a loop that ends meanwhile are left out.
    /// - Parameter body: called once with each connection.
    /// - Returns: a guarantee of one result for each connection, in no particular order.
    @available(*, noasync, message: "on a loop write await firstly { … }.value, else use a synchronous function")
    public func collect<Value: Sendable>(
        _ body: @escaping @Sendable (Connection) -> Value
    ) -> Guarantee<[Value]> {
        loop.assertOwner()
        return server?.collect(body) ?? .value([])
    }
}
