import Reactor

/// What follows a connection: the listener that serves it, or the pool in which it is idle. A connection has one at a time,
/// and calls it on the loop's thread.
protocol ConnectionAttachment: AnyObject {
    /// Whether it waits for the peer's end, and is released then; see `peerDidGo`.
    var endsWithPeer: Bool { get }
    /// What the connection watches while nothing else waits.
    var restingInterest: Interest { get }
    var isDraining: Bool { get }
    /// Whether the loop over frames that waits ends instead of waiting again.
    var endsFrameLoop: Bool { get set }

    /// The connection waits for its peer again, or has delivered everything.
    func connectionMayBeIdle(_ connection: Connection)
    /// What the connection holds in memory may have changed.
    func heldMemoryMayHaveChanged(of connection: Connection)
    /// The connection has failed while no read and no write waited, or is ended for `error`.
    func connectionDidFail(_ error: SystemError)
    /// Both sides have ended in order: there is nothing more to watch.
    func bothSidesDidEnd()
    /// The peer has gone, or the connection is about to be released.
    func peerDidGo()
    /// A close has begun.
    func connectionWillClose()
    /// The program has called `abort`, perhaps during a close, and the connection has been released.
    func connectionWasAborted()
    /// The descriptor is closed.
    func connectionDidEnd(_ end: ConnectionEnd)
}

extension Connection {
    /// Bytes that were received and that no read has consumed, and the memory of writes that the kernel has not taken.
    var heldMemory: Int {
        let queued = writer.isGathering ? queueLength : writer.queue?.weight ?? 0
        return bufferedByteCount + queued + (cold?.filter?.deferredWeight ?? 0)
    }

    @inline(never)
    func noteHeldMemory() { cold?.attachment?.heldMemoryMayHaveChanged(of: self) }
}
