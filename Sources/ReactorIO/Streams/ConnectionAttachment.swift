import Promises
import Reactor

/// The receiver of a connection's events: its `ServedConnection`, or its `ParkedConnection` while it is idle in a pool.
/// Called on the loop's thread. After the loop's end, `connectionDidEnd` is called on any thread.
class ConnectionAttachment {
    /// True when the peer's end releases this object; see `peerDidGo`.
    var endsWithPeer: Bool { false }
    /// The interest of the connection while no operation is pending.
    final var restingInterest: Interest = []
    // `@exclusivity(unchecked)`: one thread, and no user code is called during an access.
    @exclusivity(unchecked) final var drain: ConnectionDrain?

    /// Called when the connection waits again, or has delivered everything.
    func connectionMayBeIdle(_ connection: Connection) {}
    /// Called when the connection has failed without a pending read or write, or is being ended because of `error`.
    func connectionDidFail(_ error: SystemError) {}
    /// Called when the peer has ended its side without an error. `bothSides` is true if nothing is left to watch.
    func peerDidEnd(bothSides: Bool) {}
    /// Called when the peer has gone, or the connection is about to be released.
    func peerDidGo() {}
    func connectionWillClose() {}
    /// Called when the program has called `abort`, perhaps during a close, and the connection has been released.
    func connectionWasAborted() {}
    func connectionDidEnd(_ end: ConnectionEnd) {}
}

extension Connection {
    var attachment: ConnectionAttachment? {
        get { cold?.attachment }
        set {
            if newValue == nil && cold == nil { return }
            let cold = ensuredColdState
            cold.attachment = newValue
            interest.watch(cold.watchedEnds)
            updateInterest()
        }
    }

    func mayBeIdle() { cold?.attachment?.connectionMayBeIdle(self) }
}
