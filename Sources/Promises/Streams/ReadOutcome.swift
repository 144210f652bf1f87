import Reactor

/// What a read has brought. A read cannot fail as control flow, it has an outcome; that is why `Connection.read` gives a
/// guarantee.
public enum ReadOutcome: Sendable {
    /// At least one byte.
    case bytes([UInt8])
    /// The peer has ended its side: recv(2) said 0. It may still be reading ours.
    case end
    /// The connection has failed, or was closed on our side. The first error that the kernel reported; it is
    /// repeated for every later read.
    case failed(SystemError)
}

extension ReadOutcome: Equatable {
    /// The bytes; throws what `failed` holds, and `nil` at the end.
    package var bytesOrEnd: [UInt8]? {
        get throws(SystemError) {
            switch self {
            case .bytes(let bytes): bytes
            case .end: nil
            case .failed(let error): throw error
            }
        }
    }
}
