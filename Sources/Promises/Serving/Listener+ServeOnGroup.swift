import Glibc
import Reactor

// Serving on the loops of a group: this loop accepts, and hands each connection to one of them.

extension Listener {
    /// As `serve`, but on the loops of `group`: this loop accepts, and gives each connection to one of them, where the handler
    /// is called with it. What that connection and the handler's promises are goes on there, and on that thread only.
    ///
    /// ```swift
    /// let group = try LoopGroup(name: "server")
    /// listener.serve(on: group, maxConnections: 10_000) { connection in
    ///     connection.forEachChunk { connection.write($0) }
    /// }.catch { error in log(error) }
    /// ```
    ///
    /// `maxConnections`, `close`, `drain` and `activeConnections` are of all loops together; of `maxLingering` each loop has an
    /// equal share. The group is kept until the last
    /// connection is done. A loop of the group that ends is given no more connections; those that it has end with it, and those
    /// on their way to it are closed.
    /// - Parameters:
    ///   - balancing: which loop the next connection goes to.
    ///   - maxConnections: as for `serve`.
    ///   - maxLingering: as for `serve`.
    ///   - onError: as for `serve`; on the connection's loop.
    ///   - handler: is called on the connection's loop.
    /// - Returns: as `serve`. Also rejected with `ECANCELED` of `accept4` when all loops of the group have ended.
    public func serve<Done: Thenable & SendableMetatype>(
        on group: LoopGroup, balancing: LoopGroup.Balancing = .leastConnections, maxConnections: Int = .max,
        maxLingering: Int? = nil, onError: (@Sendable (any Error, Connection) -> Void)? = nil,
        _ handler: @escaping @Sendable (Connection) throws -> Done, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> {
        let lingeringLimit = Self.lingeringLimit(maxLingering, maxConnections)
        let service = GroupServer(group, balancing, maxConnections, lingeringLimit, account, loop.remote) {
            branch, connection, keeper in
            branch.serve(connection, keeper, onError, handler)
        }
        // It is asked by the listener only.
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

    /// With connections on other loops, of which it will not hear any more.
    func listenerLoopDidEnd() {
        loopWillEnd()
        drain?.finish(active: openConnections)
        claims.refuseAll(SystemError(.accept, ECANCELED, detail: "the loop has ended"))
    }

    private func endWithoutLoops() {
        end(SystemError(.accept, ECANCELED, detail: "all loops of the group have ended"))
    }
}
