import Promises
import Reactor

extension Connection {
    /// The time after which the connection fails with `ETIMEDOUT` if writes wait and the peer has taken nothing. Bytes
    /// from the peer do not count. `nil`, the default, and values of zero or less mean no limit. A delay of the event
    /// loop extends it like `idleTimeout`. A write that a filter defers begins to wait when the filter has taken it.
    ///
    /// The waiting writes, and later reads and writes, fail with that error, and TCP ends with a reset. `close` has its
    /// own limits.
    public var writeTimeout: Duration? {
        get { cold?.rare?.writeClock?.limit }
        set {
            loop.assertOwner()
            if newValue == nil && cold?.rare?.writeClock == nil { return }
            cold?.rare?.writeClock?.cancelTimer()
            ensuredRareState.writeClock = newValue.map { IdleTimer($0, of: self, watchesWrites: true) }
            if writer.isQueued { cold?.rare?.writeClock?.start() }
        }
    }
}
