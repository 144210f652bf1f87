import Promises
import Reactor

/// The receiver of a connection's events: its `ServedConnection`, or the `ParkedConnection` of the pool in which it is idle.
/// Called on the loop's thread. After the loop's end, `connectionDidEnd` is called on any thread.
class ConnectionAttachment {
    /// True when it waits for the peer's end, which releases it; see `peerDidGo`.
    var endsWithPeer: Bool { false }
    /// The interest of the connection while nothing else waits.
    final var restingInterest: Interest = []
    // `@exclusivity(unchecked)`: one thread, and no user code is called during an access.
    @exclusivity(unchecked) final var drain: ConnectionDrain?

    /// Called when the connection waits again, or has delivered everything.
    func connectionMayBeIdle(_ connection: Connection) {}
    /// Called when the connection has failed without a pending read or write, or is ended for `error`.
    func connectionDidFail(_ error: SystemError) {}
    /// Called when the peer has ended its side in order; `bothSides` if there is nothing more to watch.
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
