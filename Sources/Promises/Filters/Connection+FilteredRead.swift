import Glibc
import Reactor

// The way of received bytes through a filter: from the kernel to the filter, and from the buffered input to the read that
// waits.

extension Connection {
    /// The descriptor is readable, and the connection has a filter or lingers.
    @inline(never)
    func readDiverted() {
        if lifecycle == .lingering {
            discardInput()
            return
        }
        guard let filter = cold?.filter else { return readNow() }
        // The filter turns the loop.
        if filter.isCalling { return noteFutileReadiness(readCall) }
        guard reader.isWaiting || readsForFilter else { return }
        // Lent to code that may turn the loop, or close the connection, which reads too.
        let buffer = loop.borrowScratch()
        let count = receiveDiverted(into: buffer)
        if count > 0 {
            noteReceived(count)
            let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<count])
            // Bytes behind the end record are ignored.
            if !filter.inputHasEnded { call(filter) { try $0.receive(bytes.bytes, &$1) } }
        }
        loop.giveBack(buffer)
        if count == -Int(EAGAIN) { return noteFutileReadiness(readCall) }
        if count <= 0 { sourceDidEnd(filter, count) }
        proceed(filter, mayCallBody: true)
        guard count < 0 else { return }
        failWrites()
        if !lifecycle.isOpen { release() }
    }

    private func receiveDiverted(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        if kind.contains(.socket) { return loop.kernel.receive(fd, buffer.baseAddress!, buffer.count) }
        return loop.kernel.read(fd, buffer.baseAddress!, buffer.count)
    }

    /// The peer has ended its side of the descriptor, or the descriptor has failed.
    private func sourceDidEnd(_ filter: InstalledFilter, _ result: Int) {
        filter.sourceHasEnded = true
        if result < 0 {
            if failure == nil { noteFailure(SystemError(readCall, CInt(-result))) }
        } else if !filter.inputHasEnded {
            call(filter) { try $0.receiveEnd(&$1) }
        }
        filter.inputHasEnded = true
    }

    /// Settles the read that waits, if the filter has delivered something for it or has ended the stream.
    ///
    /// - Parameter mayCallBody: whether the body of `forEachChunk` may be called here; otherwise a job calls it.
    func serveRead(_ filter: InstalledFilter, mayCallBody: Bool) {
        let hasNews = filter.hasNewInput
        filter.hasNewInput = false
        if filter.handshake != nil { return finishHandshake(filter) }
        let hasEnded = filter.inputHasEnded
        guard case .waiting(let demand) = reader.state else {
            if hasEnded { endInput() }
            return
        }
        guard hasNews && hasInput || hasEnded else { return }
        switch demand {
        case .bytes(let limit): serveBytes(Int(limit), hasEnded)
        case .frame: serveFrame(hasNews, hasEnded)
        case .chunk:
            if !mayCallBody {
                filter.hasNewInput = hasNews
                return loop.enqueue(ServeJob(self, filter))
            }
            guard let (core, _) = takeReader(hasEnded) else { return }
            let step = takeStep(core)
            if !hasInput { return step.finish(core) }
            takeInput(65536).withUnsafeBytes { step.hand($0, .passRetained(core)) }
        }
    }

    /// Ends the wait of the reader; and reading, at the end of the stream.
    private func takeReader(_ hasEnded: Bool) -> ConnectionReader.Waiter? { hasEnded ? endInput() : reader.take() }

    @discardableResult
    private func endInput() -> ConnectionReader.Waiter? {
        if reader.hasEnded { return nil }
        let waiter = reader.end()
        if watchedEnds != 0 {
            settlePeerWatches(as: failure.map(PeerGone.failed) ?? .ended) { [failure] in
                failure != nil || !$0.ignoringHalfClose
            }
        }
        return waiter
    }

    private func serveBytes(_ limit: Int, _ hasEnded: Bool) {
        guard let (promise, _) = takeReader(hasEnded) else { return }
        let outcome =
            hasInput ? ReadOutcome.bytes(takeInput(limit)) : failure.map(ReadOutcome.failed) ?? ReadOutcome.end
        promise.fulfill(outcome)
    }

    private func serveFrame(_ hasNews: Bool, _ hasEnded: Bool) {
        guard let cold, let pending = cold.pendingFrame else { return }
        // The decoder asks whether the stream has ended.
        var promise = hasEnded ? endInput()?.promise : nil
        var missing = pending.missing
        let settle: ((PromiseCore) -> Void)?
        if let decode = pending.decode {
            settle = decode(self, &missing)
        } else if !hasNews, let error = reportedFailure {
            settle = { $0.reject(error) }
        } else {
            settle = { $0.fulfill(()) }
        }
        guard let settle else {
            cold.pendingFrame?.missing = missing
            if cold.frameClock != nil { updateFrameDeadline() }
            return
        }
        promise = promise ?? reader.take()?.promise
        cold.pendingFrame = nil
        if cold.frameClock != nil { endFrameWait() }
        if let promise { settle(promise) }
    }

    private func finishHandshake(_ filter: InstalledFilter) {
        guard filter.isReady || filter.inputHasEnded, let handshake = filter.handshake else { return }
        filter.handshake = nil
        filter.timer?.cancel()
        // A close has rejected it.
        guard reader.promise === handshake else { return }
        _ = filter.inputHasEnded ? endInput() : reader.take()
        if filter.isReady, reportedFailure == nil {
            handshake.fulfill(self)
        } else {
            handshake.reject(reportedFailure ?? ConnectionFilterError.truncated)
        }
    }

    fileprivate func runServeJob(_ filter: InstalledFilter) {
        serveRead(filter, mayCallBody: true)
        updateInterest()
    }
}

/// Calls the body of `forEachChunk` with bytes that a filter has delivered during a call of the user's.
private final class ServeJob: Job {
    private let connection: Connection
    private let filter: InstalledFilter

    init(_ connection: Connection, _ filter: InstalledFilter) {
        self.connection = connection
        self.filter = filter
        super.init()
    }

    override func run() { connection.runServeJob(filter) }

    // The promise of the read reports what happens to it.
    override var isReportedUndelivered: Bool { false }
}
