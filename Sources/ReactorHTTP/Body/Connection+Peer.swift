import Promises
import Reactor
import ReactorIO

extension Connection {
    /// Fails the connection if its peer takes no bytes for `idle` while writes wait. The first waiting write sets the
    /// limit, since most connections never have one.
    func limit(_ write: Promise<Void>, idle: Duration?) -> Promise<Void> {
        if write.isPending, writeTimeout == nil { writeTimeout = idle }
        return write
    }
}

extension Promise<Void> {
    /// This write, with its rejection handled: otherwise clients that disconnect would fill the log.
    @inline(__always)
    var mayBeIgnored: Promise<Void> {
        if !isFulfilled { self.catch(policy: .allErrors) { _ in } }
        return self
    }
}
