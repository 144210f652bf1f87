import Reactor

/// The result of a read. It includes errors, so `Connection.read` returns a guarantee.
public enum ReadOutcome: Sendable {
    /// At least one byte.
    case bytes([UInt8])
    /// The peer has ended its side: recv(2) returned 0. It may still read ours.
    case end
    /// The connection has failed, or was closed on this side. The error is the kernel's first, and every later read
    /// repeats it.
    case failed(SystemError)
}

extension ReadOutcome: Equatable {}
