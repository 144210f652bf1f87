import Promises
import Reactor
import ReactorLibc

extension InstalledFilter {
    /// - Returns: the promise of `Connection.filter`.
    static func install(
        _ filter: any ConnectionFilter, on connection: Connection, _ timeout: Duration?
    ) -> Promise<Connection> {
        connection.loop.assertOwner()
        connection.sendGathered()
        if let refusal = refusal(of: connection) { return Promise(refused: refusal) }
        let installed = InstalledFilter(filter, on: connection)
        let received = connection.takeInput(connection.bufferedByteCount)
        let core = PromiseCore.pending(Connection.self, by: connection)
        connection.ensuredColdState.filter = installed
        connection.path = .filtered
        installed.handshake = Handshake(promise: core)
        connection.reader.keep(.retaining(core), .handshake, 0)
        installed.begin(received, timeout)
        return Promise(core)
    }

    private static func refusal(of connection: Connection) -> (any Error)? {
        let (readCall, writeCall) = (connection.readCall, connection.writeCall)
        if connection.lifecycle.isClosed {
            return SystemError(writeCall, EBADF, detail: "the connection is closed")
        }
        if let failure = connection.reportedFailure { return failure }
        if !connection.kind.isSuperset(of: [.reads, .writes]) {
            return SystemError(writeCall, EBADF, detail: "a filter needs both directions")
        }
        if connection.cold?.filter != nil {
            return SystemError(writeCall, EBUSY, detail: "the connection has a filter")
        }
        if connection.reader.hasEnded { return SystemError(readCall, EPIPE, detail: "the peer has ended its side") }
        if !connection.reader.isFree { return SystemError(readCall, EBUSY, detail: "another read is waiting") }
        return connection.writer.takesWrites ? nil : SystemError(writeCall, EPIPE, detail: "this side was shut down")
    }

    /// Bytes that were received before are the filter's first input.
    private func begin(_ received: [UInt8], _ timeout: Duration?) {
        call { filter, output in
            try filter.begin(&output)
            handshake?.isBegun = !output.sent.isEmpty
        }
        if isRemoved {
            // All buffered bytes are now the filter's output.
            let delivered = connection.takeInput(connection.bufferedByteCount)
            if !received.isEmpty || !delivered.isEmpty { connection.appendInput(delivered + received) }
        } else if !received.isEmpty {
            call { filter, output in try received.withUnsafeBytes { try filter.receive($0.bytes, &output) } }
        }
        proceed()
        if let timeout, isInHandshake, connection.lifecycle.isOpenOrFailed {
            let deadline = connection.loop.now.advanced(by: timeout)
            handshake?.limit = timeout
            handshake?.deadline = deadline
            setTimer(at: deadline)
        }
        connection.updateInterest()
    }

    private func setTimer(at moment: LoopInstant) {
        handshake?.timer = connection.loop.schedule(at: moment) { self.timerFired() }
    }

    private func timerFired() {
        // The poller retains the connection only while the handshake waits. Later another thread may have released it,
        // and not yet cancelled its timer here.
        guard let handshake else { return }
        // Retained for this call, because the poller may retain the connection only for the handshake.
        let connection = connection
        defer { withExtendedLifetime(connection) {} }
        guard connection.cold?.filter === self, connection.lifecycle.isOpenOrFailed else { return }
        let now = connection.loop.now
        let late = handshake.deadline.duration(to: now)
        if let time = grace.time(lateBy: late, atMost: handshake.limit, if: connection.isReadyInKernel) {
            return setTimer(at: now.advanced(by: time))
        }
        fail(PromiseError.timedOut, ETIMEDOUT)
        proceed()
        connection.updateInterest()
    }

    private func takeHandshake() -> PromiseCore? {
        cancelTimer()
        return handshake.take()?.promise
    }

    /// Fails the stream if the promise is the handshake's.
    func readWasCancelled(_ promise: PromiseCore) {
        guard handshake?.promise === promise else { return }
        _ = takeHandshake()
        fail(SystemError(connection.readCall, ECANCELED, detail: "the handshake was cancelled"))
        proceed()
    }

    func finishHandshake() {
        guard isReady || inputHasEnded, let handshake = takeHandshake() else { return }
        let connection = connection
        // A close has already rejected it.
        guard connection.reader.isWaiting(handshake) else { return }
        if inputHasEnded { endInput() }
        connection.takeReader()?.release()
        if isReady, connection.reportedFailure == nil {
            handshake.fulfill(connection)
        } else {
            handshake.reject(connection.reportedFailure ?? ConnectionFilterError.truncated)
        }
    }
}
