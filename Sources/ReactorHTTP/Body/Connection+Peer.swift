import Glibc
import Promises
import Reactor

extension Connection {
    /// Fails the connection if its peer takes nothing for `idle` while `write` waits. The limit is that of the first write that
    /// waits, and ends when nothing is queued any more.
    func limit(_ write: Promise<Void>, idle: Duration?) -> Promise<Void> {
        guard write.isPending else { return write }
        if idleTimeout == nil { idleTimeout = idle }
        return write.ensure { [self] in if queuedBytes == 0 { idleTimeout = nil } }
    }

    /// Whether `error` is that of a peer that has left or does not read. Nobody here can mend it, and any client can cause it as
    /// often as it likes.
    func hasEnded(with error: any Error) -> Bool {
        // Those of other connections, such as to a database, have the same types.
        let watch = peerGone()
        defer { watch.cancel() }
        guard let gone = watch.settledValue else { return false }
        let failure: SystemError? = if case .failed(let error) = gone { error } else { nil }
        return switch error {
        case PeerGone.ended: gone == .ended
        // ENOBUFS is that of a server whose memory is used up.
        case PeerGone.failed(let error), let error as SystemError: failure?.code == error.code && error.code != ENOBUFS
        case is StreamError, is BodyError: false
        // That of a filter, such as TLS, whose client has ended without an end record or sends what is none.
        default: failure?.code == EPROTO && failure?.detail == "\(error)"
        }
    }
}

extension Promise<Void> {
    /// This promise of a write, whose rejection is not reported if nobody handles it: a client that leaves would decide how often.
    @inline(__always)
    var mayBeIgnored: Promise<Void> {
        if !isFulfilled { self.catch(policy: .allErrors) { _ in } }
        return self
    }
}
