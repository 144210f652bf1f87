import Promises
import Reactor
import ReactorLibc

extension Connection {
    @usableFromInline
    func startShutdown() -> Promise<Void> {
        loop.assertOwner("shutdownWrite")
        if lifecycle == .shutDown { return .value }
        if let refusal = refusalToShutDown { return Promise(refused: refusal) }
        sendGathered()
        if let failure = reportedFailure { return Promise(refused: failure) }
        if let refusal = refusalInHandshake(.shutdown) { return Promise(refused: refusal) }
        if let waiting = cold?.shutdown { return Promise(waiting) }
        if queueEndRecord() {
            if let failure = reportedFailure { return Promise(refused: failure) }
            endWriter()
            if !writer.isQueued { return .value }
        }
        let core = PromiseCore(handedOut: Void.self)
        ensuredColdState.shutdown = core
        return Promise(core)
    }

    /// - Returns: false if the end record of a filter must wait. The filter then ends this side when it can.
    func queueEndRecord() -> Bool {
        path != .filtered || cold?.filter?.queueEnd() != false
    }

    func endWriter() { if writer.end() { sendEnd() } }

    func sendEnd() {
        if kind.contains(.socket) {
            // ENOTCONN is ignored: the peer has reset, and the next read or write reports it.
            _ = loop.kernel.shutdown(fd, CInt(SHUT_WR))
        } else if lifecycle.isOpenOrFailed {
            release(as: .shutDown)
        }
        cold?.shutdown.take()?.fulfill(())
    }

    private var refusalToShutDown: SystemError? {
        if kind.contains(.socket) && loop.kernel.isForked {
            return SystemError(.shutdown, EPERM, detail: "the connection belongs to the parent process")
        }
        if let refusal = refusal(of: .shutdown, .writes, isClosed: !lifecycle.isOpenOrFailed) { return refusal }
        if kind.contains(.socket) || !kind.contains(.reads) { return nil }
        return SystemError(.shutdown, ENOTSOCK, detail: "only a socket can end one direction alone")
    }
}
