import Glibc
import Promises
import Reactor

extension Connection {
    /// Fails the connection if its peer takes nothing for `idle` while `write` waits. The limit is that of the first write that
    /// waits, and ends when nothing is queued any more.
    func limit(_ write: Promise<Void>, idle: Duration?) -> Promise<Void> {
        if idleTimeout == nil { idleTimeout = idle }
        return write.ensure { [self] in if queuedBytes == 0 { idleTimeout = nil } }
    }

    /// Whether `error` is that of a peer that has left or does not read. Nobody here can mend it, and any client can cause it as
    /// often as it likes.
    func hasEnded(with error: any Error) -> Bool {
        if error is PeerGone { return true }
        // Also of other connections. ENOBUFS is that of a server whose memory is used up.
        guard let error = error as? SystemError, error.code != ENOBUFS else { return false }
        let gone = peerGone(ignoringHalfClose: true)
        defer { gone.cancel() }
        guard case .failed(let failure)? = gone.settledValue else { return false }
        return failure.code == error.code
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
