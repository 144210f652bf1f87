import Glibc
import Reactor

/// A pool's interest in an idle connection of its own: it learns of the peer's end.
final class Parking: ConnectionAttachment {
    private weak var pool: ConnectionPool?
    private let member: PoolState.Member

    init(_ member: PoolState.Member, of pool: ConnectionPool) {
        self.member = member
        self.pool = pool
    }

    var endsWithPeer: Bool { true }
    var restingInterest: Interest { [] }
    var isDraining: Bool { false }
    var endsFrameLoop: Bool {
        get { false }
        set {}
    }

    func peerDidGo() { pool?.didLose(member) }

    // No request uses the connection, and the pool itself ends it.
    func connectionMayBeIdle(_ connection: Connection) {}
    func heldMemoryMayHaveChanged(of connection: Connection) {}
    func connectionDidFail(_ error: SystemError) {}
    func bothSidesDidEnd() {}
    func connectionWillClose() {}
    func connectionWasAborted() {}
    func connectionDidEnd(_ end: ConnectionEnd) {}
}

extension Connection {
    /// Whether nothing is under way, nothing is buffered and nothing has failed: then the next request can begin.
    var isReusable: Bool {
        lifecycle == .open && reader.isFree && !reader.hasEnded && !hasInput && pendingAnswers == 0
            && writer.takesWrites && !writer.isQueued && !writer.isGathering && cold?.filter?.isBusy != true
            && cold?.peerWatches.isEmpty != false
    }

    /// Undoes what one user of a connection may have set, for the next one.
    func resetSettings() {
        idleTimeout = nil
        frameTimeouts = nil
        if cold == nil { return }
        writeQueueLimit = Self.defaultWriteQueueLimit
        writeWatermarks = Self.defaultWatermarks
    }

    /// Whether the kernel knows of anything that makes a connection unfit for another request: input that answers
    /// none, the peer's end, or an error.
    var hasUnexpectedEvent: Bool {
        // POLLRDHUP, which the Glibc module does not have.
        loop.kernel.poll(fd, Int16(POLLIN | 0x2000)) != 0
    }

    /// Watches for the peer's end on behalf of a pool. The poller retains the connection meanwhile, but the watch does
    /// not keep the loop alive.
    func park(_ parking: Parking) {
        ensuredColdState.attachment = parking
        updateWatchedEnds()
        updateInterest()
        // If the kernel has refused the watch, the connection has failed, and its number may be closed.
        if cold?.attachment != nil, lifecycle.hasDescriptor { loop.setReferenced(false, of: fd) }
    }

    /// Ends what `park` has begun; does nothing if the connection is not parked.
    func unpark() {
        guard let cold, cold.attachment is Parking else { return }
        cold.attachment = nil
        updateWatchedEnds()
        updateInterest()
        if lifecycle.hasDescriptor { loop.setReferenced(true, of: fd) }
    }
}
