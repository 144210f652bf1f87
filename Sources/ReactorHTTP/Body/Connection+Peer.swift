import Glibc
import Promises
import Reactor

extension Connection {
    /// Fails the connection if its peer takes no bytes for `idle` while writes wait. Set with the first write that
    /// waits, since most connections have none.
    func limit(_ write: Promise<Void>, idle: Duration?) -> Promise<Void> {
        if write.isPending, writeTimeout == nil { writeTimeout = idle }
        return write
    }

    /// Whether `error` means that the peer has left or does not read. No program can prevent it, and a client can cause
    /// it at will.
    func hasEnded(with error: any Error) -> Bool {
        // Errors of other connections, such as one to a database, have the same types.
        let watch = peerGone()
        defer { watch.cancel() }
        guard let gone = watch.settledValue else { return false }
        let failure: SystemError? = if case .failed(let error) = gone { error } else { nil }
        return switch error {
        case PeerGone.ended: gone == .ended
        // ENOBUFS: the server's memory limit is reached.
        case PeerGone.failed(let error), let error as SystemError: failure?.code == error.code && error.code != ENOBUFS
        case is StreamError, is BodyError: false
        // The error of a filter such as TLS: the client has ended without an end record, or sent an invalid one.
        default: failure?.code == EPROTO && failure?.detail == "\(error)"
        }
    }
}

extension Promise<Void> {
    /// This promise of a write, whose rejection is not reported when unhandled: otherwise clients that leave would fill
    /// the log.
    @inline(__always)
    var mayBeIgnored: Promise<Void> {
        if !isFulfilled { self.catch(policy: .allErrors) { _ in } }
        return self
    }
}
