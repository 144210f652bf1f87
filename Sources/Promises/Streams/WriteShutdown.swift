import Glibc
import Reactor

/// The end of the write side, by `shutdownWrite` or by `close`.
@usableFromInline
enum WriteShutdown {
    @usableFromInline
    static func start(on connection: Connection) -> Promise<Void> {
        if connection.lifecycle == .shutDown { return .value }
        if let refusal = refusal(of: connection) { return Promise(refused: refusal) }
        connection.sendGathered()
        if let failure = connection.reportedFailure { return Promise(refused: failure) }
        if connection.layer?.isInHandshake == true {
            return Promise(
                refused: SystemError(.shutdown, EBUSY, detail: "the handshake of the filter has not finished"))
        }
        if let waiting = connection.cold?.ending.shutdown { return Promise(waiting) }
        if queueEndRecord(of: connection) {
            if let failure = connection.reportedFailure { return Promise(refused: failure) }
            if !endWriter(of: connection) { return .value }
        }
        let core = PromiseCore(root: Void.self)
        connection.ensuredColdState.ending.shutdown = core
        return Promise(core)
    }

    /// Queues the end record of a filter, unless there is none.
    /// - Returns: false if it must wait. Then the filter ends this side when it can.
    static func queueEndRecord(of connection: Connection) -> Bool {
        connection.path != .filtered || connection.layer?.queueEnd() != false
    }

    /// Ends this side behind the queue.
    /// - Returns: whether the end waits for the queue.
    @discardableResult
    static func endWriter(of connection: Connection) -> Bool {
        let action = connection.writer.end()
        if action == .sendEnd { sendEnd(of: connection) }
        return action == .waitForQueue
    }

    /// The writer has ended.
    static func sendEnd(of connection: Connection) {
        if connection.kind.contains(.socket) {
            // ENOTCONN: the peer has reset. The next read or write reports it.
            _ = connection.loop.kernel.shutdown(connection.fd, CInt(SHUT_WR))
        } else if connection.lifecycle.isOpen {
            connection.release(as: .shutDown)
        }
        connection.cold?.ending.shutdown.take()?.fulfill(())
    }

    private static func refusal(of connection: Connection) -> SystemError? {
        let kind = connection.kind
        if kind.contains(.socket) && connection.loop.kernel.isForked {
            return SystemError(.shutdown, EPERM, detail: "the connection belongs to the parent process")
        }
        let isClosed = !connection.lifecycle.isOpen
        if let refusal = connection.descriptor.refusal(of: .shutdown, .writes, isClosed: isClosed) { return refusal }
        if kind.contains(.socket) || !kind.contains(.reads) { return nil }
        return SystemError(.shutdown, ENOTSOCK, detail: "only a socket can end one direction alone")
    }
}
