import Glibc
import Reactor

// Serving until the process is told to stop.

extension Listener {
    /// Serves until the process is told to stop, and drains the connections then: the first of `signals` drains within
    /// `drainTimeout`, and the second, which may be another of them, aborts the remaining connections at once.
    ///
    /// ```swift
    /// let served = listener.serve(untilStoppedBy: [SIGTERM, SIGINT], drainTimeout: .seconds(10)) { connection in
    ///     connection.forEachChunk { connection.write($0) }
    /// }
    /// print("listening on \(listener.localAddress)")
    /// let result = try hang(served)
    /// ```
    ///
    /// The signals are watched from this call on, as by `EventLoop.onSignal`. When the promise settles, the process's
    /// own actions are restored, so that a further SIGTERM ends the process.
    ///
    /// Several listeners stop together by `Listener.drain(_:atFirstOf:deadline:)`.
    /// - Parameters:
    ///   - signals: at least one.
    ///   - drainTimeout: how long the drain may take; see `drain(deadline:)`.
    ///   - maxConnections: as for `serve`.
    ///   - maxLingering: as for `serve`.
    ///   - onSignal: is called with each signal, before the connections are drained, or aborted. A server that is to
    ///     end otherwise at the second signal, such as with an exit code, does so here.
    ///   - onError: as for `serve`.
    ///   - handler: as for `serve`.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: a promise of what became of the connections that were open at the first signal. It is fulfilled when
    ///   the last of them has ended, at the latest at the deadline or the second signal; with zeros if the listener was
    ///   closed without a drain and its connections have ended. Rejected as `serve`, and with a `SystemError` of
    ///   `sigaction`, as `onSignal`; with `EINVAL` if there is no signal.
    ///
    ///   Cancelling it ends the watches and closes the listener; active connections continue, and a drain that has
    ///   begun does.
    public func serve<Done: Thenable>(
        untilStoppedBy signals: [CInt], drainTimeout: Duration, maxConnections: Int = .max, maxLingering: Int? = nil,
        onSignal: ((CInt) -> Void)? = nil, onError: ((any Error, Connection) -> Void)? = nil,
        _ handler: @escaping (Connection) throws -> Done, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<DrainResult> {
        serve(untilStoppedBy: signals, drainTimeout, onSignal, file, line) {
            serve(
                maxConnections: maxConnections, maxLingering: maxLingering, onError: onError, handler, file: file,
                line: line)
        }
    }

    /// As `serve(untilStoppedBy:)`, but on the loops of `group`, as `serve(on:)`. The group itself is not stopped.
    ///
    /// ```swift
    /// let served = listener.serve(on: group, untilStoppedBy: [SIGTERM, SIGINT], drainTimeout: .seconds(10)) {
    ///     connection in connection.forEachChunk { connection.write($0) }
    /// }
    /// ```
    ///
    /// At the deadline and at the second signal the promise does not wait for the other loops, which abort their
    /// connections as soon as they respond.
    /// - Parameters:
    ///   - balancing: as for `serve(on:)`.
    ///   - signals: at least one.
    ///   - drainTimeout: how long the drain may take; see `drain(deadline:)`.
    ///   - maxConnections: as for `serve`.
    ///   - maxLingering: as for `serve`.
    ///   - onSignal: as for `serve(untilStoppedBy:)`; called on the listener's loop.
    ///   - onError: as for `serve(on:)`.
    ///   - handler: as for `serve(on:)`.
    ///   - group: the loops that run the handlers.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: as `serve(untilStoppedBy:)` and `serve(on:)`.
    public func serve<Done: Thenable & SendableMetatype>(
        on group: LoopGroup, balancing: LoopGroup.Balancing = .leastConnections, untilStoppedBy signals: [CInt],
        drainTimeout: Duration, maxConnections: Int = .max, maxLingering: Int? = nil,
        onSignal: ((CInt) -> Void)? = nil, onError: (@Sendable (any Error, Connection) -> Void)? = nil,
        _ handler: @escaping @Sendable (Connection) throws -> Done, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<DrainResult> {
        serve(untilStoppedBy: signals, drainTimeout, onSignal, file, line) {
            serve(
                on: group, balancing: balancing, maxConnections: maxConnections, maxLingering: maxLingering,
                onError: onError, handler, file: file, line: line)
        }
    }

    /// - Parameter serve: begins to serve.
    func serve(
        untilStoppedBy signals: [CInt], _ timeout: Duration, _ onSignal: ((CInt) -> Void)?, _ file: StaticString,
        _ line: UInt, _ serve: () -> Promise<Void>
    ) -> Promise<DrainResult> {
        let promise = SignalledDrain([self], timeout, onSignal).start(signals, file, line, serving: serve)
        return Promise(promise.core.traced(root: "serve", Promise<DrainResult>.self, file, line))
    }
}
