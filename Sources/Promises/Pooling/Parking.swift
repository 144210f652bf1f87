import Glibc
import Reactor

/// A pool's interest in an idle connection of its own: it learns of the peer's end.
final class Parking: ConnectionAttachment {
    private weak var owner: (any PoolOwner)?
    // Until the pool has closed it.
    private let member: PoolMember

    init(_ member: PoolMember, of owner: any PoolOwner) {
        self.member = member
        self.owner = owner
    }

    var endsWithPeer: Bool { true }
    var restingInterest: Interest { [] }
    var isDraining: Bool { false }
    var endsFrameLoop: Bool {
        get { false }
        set {}
    }

    func peerDidGo() { owner?.didLose(member) }

    // No request uses the connection, and the pool itself ends it.
    func connectionMayBeIdle(_ connection: Connection) {}
    func connectionDidFail(_ error: SystemError) {}
    func peerDidEnd(bothSides: Bool) {}
    func connectionWillClose() {}
    func connectionWasAborted() {}
    func connectionDidEnd(_ end: ConnectionEnd) {}
}

extension Parking {
    /// Watches for the peer's end of an idle connection. The poller retains the connection meanwhile, but the watch does not
    /// keep the loop alive.
    func begin(on connection: Connection) {
        connection.attachment = self
        // If the kernel has refused the watch, the connection has failed, and its number may be closed.
        if connection.attachment === self { Self.setReferenced(false, connection) }
    }

    /// Ends what `begin` has begun; does nothing if the connection is not parked.
    static func end(on connection: Connection) {
        guard connection.attachment is Parking else { return }
        connection.attachment = nil
        setReferenced(true, connection)
    }

    private static func setReferenced(_ isReferenced: Bool, _ connection: Connection) {
        if connection.lifecycle.hasDescriptor { connection.loop.setReferenced(isReferenced, of: connection.fd) }
    }

    /// Closes a connection that no request uses any more. There is no answer to wait for, also if its request has begun
    /// the close. What is queued has `time` to leave, or the time that the request has given.
    static func close(_ connection: Connection, linger time: Duration = .zero) {
        end(on: connection)
        guard connection.lifecycle.hasDescriptor else { return }
        if connection.queuedBytes == 0 || time == .zero {
            connection.close(linger: .zero)
        } else if !connection.isClosed {
            connection.close(linger: time)
        }
    }

    /// Undoes what one user of a connection may have set, for the next one.
    static func resetSettings(of connection: Connection) {
        connection.frameTimeouts = nil
        guard connection.cold?.hasRareState == true else { return }
        connection.idleTimeout = nil
        connection.writeQueueLimit = WriteLimits.defaultQueueLimit
        connection.writeWatermarks = WriteLimits.defaultWatermarks
    }

    /// Whether the next request can begin: nothing is under way, nothing is buffered and nothing has failed.
    static func isReusable(_ connection: Connection) -> Bool {
        connection.lifecycle == .open && connection.reader.isFree && !connection.reader.hasEnded
            && !connection.owesAnything && connection.writer.isUnused && connection.cold?.peerWatches.isEmpty != false
    }

    /// Whether the kernel knows of anything that makes a connection unfit for another request: input that answers
    /// none, the peer's end, or an error.
    static func hasUnexpectedEvent(_ connection: Connection) -> Bool {
        // POLLRDHUP, which the Glibc module does not have.
        connection.loop.kernel.poll(connection.fd, Int16(POLLIN | 0x2000)) != 0
    }
}
