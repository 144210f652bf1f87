import Reactor

/// The way a connection has ended; see `Connection.closed`.
public enum ConnectionEnd: Hashable, Sendable {
    /// Gracefully, by `close`, by the end of a pipe's writer, or by the release of the last reference. The kernel has
    /// taken everything that was written.
    case closed
    /// By `abort`, or because a limit of `close` expired while bytes still waited for the kernel. Queued and
    /// gathered bytes are lost. After an earlier error it is `failed`.
    case aborted
    /// By its first error, such as a reset or an idle timeout, before a `close` or `abort` on this side was complete.
    /// Earlier writes, including gathered bytes, may not have been sent.
    case failed(SystemError)
    /// `detach` has given the descriptor away.
    case detached
    /// The loop has ended.
    case loopEnded
}
