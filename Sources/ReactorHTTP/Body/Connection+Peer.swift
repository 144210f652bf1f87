import Promises
import Reactor
import ReactorIO

extension Connection {
    /// Fails the connection if its peer takes no bytes for `idle` while writes wait. Set with the first waiting write,
    /// since most connections have none.
    func limit(_ write: Promise<Void>, idle: Duration?) -> Promise<Void> {
        if write.isPending, writeTimeout == nil { writeTimeout = idle }
        return write
    }
}

extension Promise<Void> {
    /// This promise of a write, with its rejection handled. Without it, clients that leave would fill the log.
    @inline(__always)
    var mayBeIgnored: Promise<Void> {
        if !isFulfilled { self.catch(policy: .allErrors) { _ in } }
        return self
    }
}
