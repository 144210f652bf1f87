import Promises

extension Connection {
    /// Fails the connection if its peer takes nothing for `idle` while `write` waits, or others of that kind.
    func limit(_ write: Promise<Void>, idle: Duration?) -> Promise<Void> {
        if idleTimeout == nil { idleTimeout = idle }
        return write.ensure { [self] in if queuedBytes == 0 { idleTimeout = nil } }
    }
}
