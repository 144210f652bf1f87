import Promises
import Reactor
import ReactorLibc

extension Listener {
    /// Accepts connections, and calls `handler` with each, until the listener is closed or a signal of `options`
    /// arrives. A connection is closed when its handler's promise has settled.
    ///
    /// ```swift
    /// listener.serve(ServeOptions(maxConnections: 10_000)) { connection in
    ///     connection.forEachChunk { connection.write($0) }
    /// }
    /// ```
    ///
    /// A handler's rejection ends only its connection. A program that serves until SIGTERM or SIGINT waits for the
    /// result:
    ///
    /// ```swift
    /// let served = listener.serve(.untilStopped) { connection in
    ///     connection.forEachChunk { connection.write($0) }
    /// }
    /// let result = try hang(served)
    /// ```
    /// - Parameters:
    ///   - options: the limits, and the signals that stop the server.
    ///   - onError: called with a handler's error and its connection, but not for cancellations or for connections that
    ///     `drain` has ended. Without `onError`, `conf.logHandler` gets a `LogEvent.handlerFailed`, unless the peer has
    ///     left, is silent, does not read, or has sent bytes that a decoder or a filter refuses.
    ///   - handler: handles one connection; called on the listener's loop.
    /// - Returns: a promise of how the connections ended that were open when a drain began; zeros without a drain.
    ///   Fulfilled when the listener is closed and the last connection has ended; with `stopSignals`, at the latest
    ///   when the drain ends. Rejected with the `SystemError` that ended the listener: `EBADF`, `EINVAL` or `ENOTSOCK`
    ///   from `accept4`. Rejected at once with
    ///   - `EBADF` after `close`;
    ///   - `EBUSY` if `accept` or `serve` is running;
    ///   - `EINVAL` if `maxConnections` is below one or `maxLingering` below zero;
    ///   - the error from `sigaction` if a signal cannot be watched, as for `EventLoop.onSignal`.
    ///
    /// Cancelling the promise closes the listener and stops watching the signals. Active connections and a drain
    /// continue.
    @discardableResult
    public func serve<Done: Thenable>(
        _ options: ServeOptions = ServeOptions(), onError: ((any Error, Connection) -> Void)? = nil,
        handler: @escaping (Connection) throws -> Done, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<DrainResult> {
        begin(options, on: nil, onError, file, line) { tracker, connection, transfer in
            tracker.serve(connection, transfer, handler)
        }
    }

    /// Serves like `serve`, but on the loops of `group`. This loop accepts each connection and transfers it to one of
    /// those loops, to which the handler's promises also belong.
    ///
    /// ```swift
    /// let group = try LoopGroup(name: "server")
    /// let counters = LoopLocal { Counters() }
    /// listener.serve(on: group, ServeOptions(maxConnections: 10_000)) { connection in
    ///     counters.value(for: connection).connections += 1
    ///     return connection.forEachChunk { connection.write($0) }
    /// }
    /// ```
    ///
    /// `maxConnections`, `close`, `drain` and `activeConnections` apply to all loops together. The group is retained
    /// until the last connection has ended, but is not stopped. A loop that ends gets no more connections. Its own
    /// connections end with it, and those in transfer to it are closed. At a drain's deadline the promise does not wait
    /// for the other loops, which abort their connections as soon as they respond. `onError` is called on the
    /// connection's loop.
    /// - Returns: the same as `serve`. Also rejected with `ECANCELED` from `accept4` when all loops of the group have
    ///   ended.
    @discardableResult
    public func serve<Done: Thenable & SendableMetatype>(
        on group: LoopGroup, _ options: ServeOptions = ServeOptions(),
        onError: (@Sendable (any Error, Connection) -> Void)? = nil,
        handler: @escaping @Sendable (Connection) throws -> Done, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<DrainResult> {
        begin(options, on: group, onError, file, line) { @Sendable tracker, connection, transfer in
            tracker.serve(connection, transfer, handler)
        }
    }

    /// Calls `body` with each connection of `serve`, on its loop's thread, and gathers the results.
    ///
    /// ```swift
    /// listener.collect { connection in
    ///     (client: connection.peerAddress, received: connection.bytesReceived, sent: connection.bytesSent)
    /// }.done { clients in
    ///     for (client, received, sent) in clients { print(client.map { "\($0)" } ?? "?", received, sent) }
    /// }
    /// ```
    ///
    /// For programs that list their clients, or end some of them: `body` may use the connection. Includes lingering
    /// connections. Omits connections whose loop ends before it answers.
    /// - Returns: a guarantee of one result for each connection, in no particular order.
    @available(*, noasync, message: "on a loop write await firstly { … }.value, else use a synchronous function")
    public func collect<Value: Sendable>(
        _ body: @escaping @Sendable (Connection) -> Value
    ) -> Guarantee<[Value]> {
        loop.assertOwner()
        return server?.collect(body) ?? .value([])
    }
}

// MARK: All overloads of serve

extension Listener {
    /// - Parameters:
    ///   - onError: Sendable if there is a group, as must be `start`.
    ///   - start: begins to serve a connection, on the connection's loop.
    func begin(
        _ options: ServeOptions, on group: LoopGroup?, _ onError: ((any Error, Connection) -> Void)?,
        _ file: StaticString, _ line: UInt, _ start: @escaping Server.Start
    ) -> Promise<DrainResult> {
        let promise: Promise<DrainResult>
        do throws(SystemError) {
            if group != nil, loop.kernel.table.isSimulated {
                throw SystemError(.accept, ENOTSUP, detail: Syscalls.simulationHasOneThread)
            }
            if state.isClosed { throw SystemError(.accept, EBADF, detail: "the listener is closed") }
            if server != nil || !waiting.isEmpty {
                throw SystemError(.accept, EBUSY, detail: "the listener is in use")
            }
            if let refusal = options.refusal { throw refusal }
            if !options.stopSignals.isEmpty {
                signals = try StopSignals(
                    [self], options.drainTimeout, options.onSignal, options.stopSignals, file, line)
            }
            let core = PromiseCore.pending(DrainResult.self, by: self)
            let onError = onError ?? Reports.ofHandlers(CallSite(file, line))
            server = Server(
                options, on: group, from: loop, state.counts, onError, at: CallSite(file, line), start,
                didChange: serverDidChange)
            // `StopSignals` will watch this promise.
            core.willBeHandedOutAgain()
            serving = core
            state.serve()
            acceptor.updateInterest(for: self)
            promise = Promise(core)
        } catch { promise = Promise(refused: error) }
        return Promise(promise.core.traced(root: "serve", Promise<DrainResult>.self, file, line))
    }
}

extension Reports {
    static func ofHandlers(_ callSite: CallSite) -> @Sendable (any Error, Connection) -> Void {
        { error, connection in
            if !connection.peerHasCaused(error) { conf.log(.handlerFailed(error, request: nil, at: callSite)) }
        }
    }
}
