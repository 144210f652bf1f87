import Promises

extension Connection {
    /// Fails the connection if its peer takes nothing for `idle` while `write` waits. The limit is that of the first write that
    /// waits, and ends when nothing is queued any more.
    func limit(_ write: Promise<Void>, idle: Duration?) -> Promise<Void> {
        if idleTimeout == nil { idleTimeout = idle }
        return write.ensure { [self] in if queuedBytes == 0 { idleTimeout = nil } }
    }
}
