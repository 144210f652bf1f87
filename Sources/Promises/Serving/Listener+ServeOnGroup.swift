import Glibc
import Reactor

// Serving on the loops of a group: this loop accepts the connections and transfers each to one of them.

extension Listener {
    /// As `serve`, but on the loops of `group`: this loop accepts the connections and transfers each to one of them,
    /// which calls the handler with it. The connection and the handler's promises belong to that loop, and are used on
    /// its thread only.
    ///
    /// ```swift
    /// let group = try LoopGroup(name: "server")
    /// listener.serve(on: group, maxConnections: 10_000) { connection in
    ///     connection.forEachChunk { connection.write($0) }
    /// }.catch { error in log(error) }
    /// ```
    ///
    /// `maxConnections`, `close`, `drain` and `activeConnections` apply to all loops together; `maxLingering` is
    /// divided equally among them. The group is retained until the last connection has ended. When a loop of the group
    /// ends, it gets no more connections; those that it has end with it, and those being transferred to it are closed.
    /// - Parameters:
    ///   - balancing: how the loop of the next connection is chosen.
    ///   - maxConnections: as for `serve`.
    ///   - maxLingering: as for `serve`.
    ///   - onError: as for `serve`; called on the connection's loop.
    ///   - handler: called on the connection's loop.
    ///   - group: the loops that run the handlers.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: as `serve`. Also rejected with `ECANCELED` of `accept4` when all loops of the group have ended.
    public func serve<Done: Thenable & SendableMetatype>(
        on group: LoopGroup, balancing: LoopGroup.Balancing = .leastConnections, maxConnections: Int = .max,
        maxLingering: Int? = nil, onError: (@Sendable (any Error, Connection) -> Void)? = nil,
        _ handler: @escaping @Sendable (Connection) throws -> Done, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> {
        serve(on: group, balancing, maxConnections, maxLingering, file, line) { tracker, connection, keeper in
            tracker.serve(connection, keeper, onError, handler)
        }
    }

    /// - Parameter start: begins to serve a connection, on the connection's loop.
    func serve(
        on group: LoopGroup, _ balancing: LoopGroup.Balancing, _ maxConnections: Int, _ maxLingering: Int?,
        _ file: StaticString, _ line: UInt, _ start: @escaping GroupServer.Start
    ) -> Promise<Void> {
        let lingeringLimit = Self.lingeringLimit(maxLingering, maxConnections)
        let service = GroupServer(
            group, balancing, maxConnections, lingeringLimit, memoryLimit, counters, loop.remote, start)
        // Unowned: only the listener calls it.
        let promise = startService(maxConnections, maxLingering) { [unowned self] accepted in
            if !service.handOver(accepted) { endWithoutLoops() }
        }
        if promise.isPending {
            self.group = service
            service.begin(self)
        }
        return Promise(promise.core.traced(root: "serve", Promise<Void>.self, file, line))
    }
}

extension Listener: GroupListener {
    func groupDidEnd() {
        if !isClosed { endWithoutLoops() }
    }

    /// Connections on other loops continue, but will not be reported here any more.
    func listenerLoopDidEnd() {
        loopWillEnd()
        drain?.finish(active: openConnections)
        acceptQueue.refuseAll(SystemError(.accept, ECANCELED, detail: "the loop has ended"))
    }

    private func endWithoutLoops() {
        end(SystemError(.accept, ECANCELED, detail: "all loops of the group have ended"))
    }
}
