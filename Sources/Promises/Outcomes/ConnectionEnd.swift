import Reactor

/// The way a connection has ended; see `Connection.closed`.
public enum ConnectionEnd: Hashable, Sendable {
    /// Gracefully, by `close`, by the end of a pipe's writer, or by the release of the last reference. The kernel has
    /// taken everything that was written.
    case closed
    /// By `abort`, or because a limit of `close` expired before the kernel had taken everything and before anything
    /// failed. Queued and gathered bytes are lost.
    case aborted
    /// By its first error, such as a reset or an idle timeout, before a `close` or `abort` on this side was complete.
    /// Earlier writes, including gathered bytes, may not have been sent.
    case failed(SystemError)
    /// `detach` has given the descriptor away.
    case detached
    /// The loop has ended.
    case loopEnded
}
