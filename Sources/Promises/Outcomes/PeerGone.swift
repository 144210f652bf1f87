import Reactor

/// The way a peer has gone; see `Connection.peerGone`. As an error, the reason for a cancellation by
/// `cancelWhenPeerGone`.
public enum PeerGone: Error, Hashable, Sendable {
    /// The peer has ended its side. It may still read ours: a closed socket and a half-closed one look the same here.
    case ended
    /// The connection has failed because of a reset (`ECONNRESET`) or a network failure (`ETIMEDOUT`).
    case failed(SystemError)
}

extension PeerGone: CustomStringConvertible {
    /// A sentence for people.
    public var description: String {
        switch self {
        case .ended: "the peer has ended its side"
        case .failed(let error): "the peer has gone: \(error)"
        }
    }
}
