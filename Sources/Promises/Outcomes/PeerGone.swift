import Reactor

/// How a peer has gone; see `Connection.peerGone`. As an error, it is the reason why `cancelWhenPeerGone` has
/// cancelled.
public enum PeerGone: Error, Hashable, Sendable {
    /// The peer has ended its side. It may still be reading ours: a client that has closed its socket and one that has
    /// only ended its side look the same here.
    case ended
    /// The connection has failed, by a reset (`ECONNRESET`) or a network failure (`ETIMEDOUT`).
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
