import Glibc
import Reactor

extension Listener {
    /// Drains `listeners` when the process is told to stop: the first of `signals` drains all of them within
    /// `deadline`, and the second, which may be another of them, aborts the remaining connections at once.
    ///
    /// ```swift
    /// let site = pages.serve { … }
    /// let metrics = figures.serve { … }
    /// let result = try hang(Listener.drain([pages, figures], atFirstOf: [SIGTERM, SIGINT], deadline: .seconds(10)))
    /// ```
    ///
    /// For a single listener there is `serve(untilStoppedBy:)`, and `serveUntilStopped`, which waits as well.
    ///
    /// The signals are watched from this call on, as by `EventLoop.onSignal`, and keep the loop alive. When the promise
    /// settles, the process's own actions are restored.
    /// - Parameters:
    ///   - listeners: listeners of this thread's loop. If one of them does not serve yet, the promise waits for the
    ///     first signal, which drains that listener, even if it is closed before.
    ///   - signals: at least one.
    ///   - deadline: how long the drain may take; see `drain(deadline:)`.
    ///   - onSignal: is called with each signal, before the listeners are drained, or aborted.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: a promise of the account of all listeners together. It is fulfilled when each listener either has
    ///   been drained or is closed and its last connection has ended. A listener that is closed without a drain adds
    ///   nothing to the account. Rejected with
    ///   - `SystemError` of `sigaction`, at once, as `onSignal`, and with `EINVAL` if there is no signal;
    ///   - the error with which `serve` of a listener is rejected, which then counts as handled there; the other
    ///     listeners continue.
    ///
    ///   Cancelling it ends the watches only.
    @available(*, noasync, message: "an async function has no loop of its own")
    public static func drain(
        _ listeners: [Listener], atFirstOf signals: [CInt], deadline: Duration, onSignal: ((CInt) -> Void)? = nil,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<DrainResult> {
        let promise = SignalledDrain(listeners, deadline, onSignal).start(signals, file, line)
        return Promise(promise.core.traced(root: "drain", Promise<DrainResult>.self, file, line))
    }
}
