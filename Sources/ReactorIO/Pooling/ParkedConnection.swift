import ReactorLibc

/// Watches a pool's idle connection for the end of the peer's stream.
final class ParkedConnection: ConnectionAttachment {
    private weak var owner: (any PoolOwner)?
    // A retain cycle until the pool has closed the member.
    private let member: PoolMember

    init(_ member: PoolMember, of owner: any PoolOwner) {
        self.member = member
        self.owner = owner
    }

    override var endsWithPeer: Bool { true }

    override func peerDidGo() { owner?.didLose(member) }
}

extension ParkedConnection {
    /// Watches `connection`. The poller retains it, but it does not keep the loop alive.
    func begin(on connection: Connection) {
        connection.attachment = self
        // If the kernel refused the watch, the connection has failed.
        if connection.attachment === self { Self.setReferenced(false, connection) }
    }

    static func end(on connection: Connection) {
        guard connection.attachment is ParkedConnection else { return }
        connection.attachment = nil
        setReferenced(true, connection)
    }

    private static func setReferenced(_ isReferenced: Bool, _ connection: Connection) {
        if connection.lifecycle.hasDescriptor { connection.loop.setReferenced(isReferenced, of: connection.fd) }
    }

    /// Closes a connection that no lease uses any more, without waiting for an answer, even if its request began the
    /// close. Queued bytes have `time`, or the request's own limit, to be sent.
    static func close(_ connection: Connection, linger time: Duration = .zero) {
        end(on: connection)
        guard connection.lifecycle.hasDescriptor else { return }
        if connection.queuedBytes == 0 || time == .zero {
            connection.close(linger: .zero)
        } else if !connection.isClosed {
            connection.close(linger: time)
        }
    }

    static func resetSettings(of connection: Connection) {
        connection.frameTimeouts = nil
        guard connection.cold?.rare != nil else { return }
        connection.idleTimeout = nil
        connection.writeTimeout = nil
        connection.readRate = nil
        connection.writeQueueLimit = WriteLimits.defaultQueueLimit
        connection.writeWatermarks = WriteLimits.defaultWatermarks
    }

    /// True when nothing is in progress, buffered or failed.
    static func isReusable(_ connection: Connection) -> Bool {
        connection.lifecycle == .open && connection.reader.isFree && !connection.reader.hasEnded
            && !connection.owesAnything && connection.writer.isUnused && connection.cold?.peerWatches.isEmpty != false
    }

    /// True for unsolicited input, the peer's end, or an error.
    static func hasUnexpectedEvent(_ connection: Connection) -> Bool {
        // 0x2000 is POLLRDHUP, which the Glibc module lacks.
        connection.loop.kernel.poll(connection.fd, Int16(POLLIN | 0x2000)) != 0
    }
}
