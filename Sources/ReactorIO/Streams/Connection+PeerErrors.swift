import Promises
import Reactor
import ReactorLibc

// Recognizes a handler's errors that its peer has caused, which could fill a log.

extension Connection {
    /// Returns true when `error` means that the peer has left, does not read, or has broken the protocol of a filter.
    package func hasEnded(with error: any Error) -> Bool {
        // Compared with `failure`: errors from other connections, such as a database's, have the same types.
        let failure = cold?.rare?.failure
        return switch error {
        // The work for the connection was cancelled.
        case PromiseError.cancelled: !lifecycle.isOpenOrFailed || failure != nil || hasSeenPeersEnd
        case PeerGone.ended: failure == nil && hasSeenPeersEnd
        // `ENOBUFS` means that the server's memory limit is reached.
        case PeerGone.failed(let error), let error as SystemError:
            failure?.error.code == error.code && error.code != ENOBUFS
        case is StreamError: false
        default: failure?.cause.map { type(of: $0) == type(of: error) } == true
        }
    }

    /// Returns true when the peer has caused `error`: by its end, its silence, its input, or the memory that it takes.
    func peerHasCaused(_ error: any Error) -> Bool {
        if hasEnded(with: error) || cold?.rare?.refusedInput == ObjectIdentifier(type(of: error)) { return true }
        return switch error {
        case StreamError.endedEarly: hasSeenPeersEnd
        case StreamError.timedOut: frameTimeouts != nil
        case let error as SystemError: error.code == ENOBUFS && failure?.code == ENOBUFS
        default: false
        }
    }

    private var hasSeenPeersEnd: Bool { reader.hasEnded || cold?.peerWatches.hasSeenEnd == true }

    @usableFromInline @inline(never)
    func noteRefusedInput(_ error: any Error) {
        ensuredRareState.refusedInput = ObjectIdentifier(type(of: error))
    }
}
