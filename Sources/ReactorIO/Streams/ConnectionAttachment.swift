import Promises
import Reactor

/// What a connection reports to: its `ServedConnection`, or the `Parking` of the pool in which it is idle. It has one
/// at a time, and calls it on the loop's thread; once the loop has ended, it calls `connectionDidEnd` on any thread.
class ConnectionAttachment {
    /// Whether it waits for the peer's end, and is released then; see `peerDidGo`.
    var endsWithPeer: Bool { false }
    /// The interest of the connection while nothing else waits.
    final var restingInterest: Interest = []
    /// The drain of the listener, once it has begun.
    // `@exclusivity(unchecked)`: one thread, and no user code is called during an access.
    @exclusivity(unchecked) final var drain: ConnectionDrain?

    /// The connection waits for its peer again, or has delivered everything.
    func connectionMayBeIdle(_ connection: Connection) {}
    /// The connection has failed while no read and no write was pending, or is ended for `error`.
    func connectionDidFail(_ error: SystemError) {}
    /// The peer has ended its side in order; `bothSides` if there is nothing more to watch.
    func peerDidEnd(bothSides: Bool) {}
    /// The peer has gone, or the connection is about to be released.
    func peerDidGo() {}
    /// A close has begun.
    func connectionWillClose() {}
    /// The program has called `abort`, perhaps during a close, and the connection has been released.
    func connectionWasAborted() {}
    /// The descriptor is closed.
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
