import Reactor

/// How a peer has gone; see `Connection.peerGone`. As an error, it says why `cancelWhenPeerGone` has cancelled.
public enum PeerGone: Error, Hashable, Sendable {
    /// The peer has ended its side. It may still be reading ours: that a client has closed its socket and that it has
    /// only ended its side look the same here.
    case ended
    /// The connection has failed, by a reset (`ECONNRESET`) or because the network did (`ETIMEDOUT`).
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
