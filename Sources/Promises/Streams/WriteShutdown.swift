import Glibc
import Reactor

/// The start of a `shutdownWrite`.
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
        if connection.queueEndRecord() {
            if let failure = connection.reportedFailure { return Promise(refused: failure) }
            if !connection.endWriter() { return .value }
        }
        let core = PromiseCore(root: Void.self)
        connection.ensuredColdState.ending.shutdown = core
        return Promise(core)
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
