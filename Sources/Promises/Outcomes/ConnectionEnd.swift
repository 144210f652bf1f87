import Reactor

/// How a connection has ended; see `Connection.closed`.
public enum ConnectionEnd: Hashable, Sendable {
    /// In order, by `close`, by the end of a pipe's writer, or because the last reference was released: the kernel has
    /// taken all that was written.
    case closed
    /// By `abort`, or by a limit of `close` that was reached before the kernel had taken all, before anything had
    /// failed. What was queued or gathered is lost.
    case aborted
    /// By its first error, which came before a `close` or an `abort` on this side was complete: a reset, the time-out
    /// of `idleTimeout`, the network. What was written before, gathered bytes included, may not have left.
    case failed(SystemError)
    /// `detach` has given the descriptor away.
    case detached
    /// The loop has ended.
    case loopEnded
}
