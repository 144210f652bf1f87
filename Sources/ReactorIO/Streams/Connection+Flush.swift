import Promises
import Reactor
import ReactorLibc

extension Connection {
    var turn: UInt32 { UInt32(truncatingIfNeeded: loop.turnNumber) }

    /// - Returns: the number of bytes that the kernel has taken; below zero if the connection has failed.
    @inline(__always)
    func transmit(_ bytes: UnsafeRawBufferPointer, in turn: UInt32) -> Int {
        didTransmit(callSend(bytes.baseAddress!, bytes.count), in: turn)
    }

    func transmit(_ pieces: [SharedBytes]) -> Int {
        let most = min(pieces.count, WriteQueue.mostPieces)
        let result = withUnsafeTemporaryAllocation(of: iovec.self, capacity: most) { vectors in
            for (index, piece) in pieces.prefix(most).enumerated() {
                // The address is valid until the call returns, because `pieces` retains the memory.
                (vectors.baseAddress! + index).initialize(to: piece.withUnsafeBytes { iovec(of: $0) })
            }
            return callSend(UnsafeBufferPointer(vectors))
        }
        return didTransmit(result, in: turn)
    }

    @inline(__always)
    func didTransmit(_ result: Int, in turn: UInt32) -> Int {
        if result < 0 && result != -Int(EAGAIN) {
            fail(SystemError(writeCall, CInt(-result)), losesOutput: true)
            return -1
        }
        if result > 0 {
            writer.turnOfLastSend = turn
            didSend(result)
        }
        return max(result, 0)
    }

    @inline(__always)
    func didSend(_ count: Int) {
        bytesSent += count
        noteActivity()
    }

    @inline(__always)
    var writesDirectly: Bool { lifecycle == .open && path == .direct && writer.takesWrites && kind.contains(.writes) }

    var takesWrites: Bool { writesDirectly || cold?.filter?.takesWrites == true }

    var refusalToWrite: any Error {
        refusal(of: writeCall, .writes) ?? reportedFailure ?? refusalInHandshake(writeCall)
            ?? SystemError(writeCall, EPIPE, detail: "this side was shut down")
    }

    /// Queues bytes that the kernel does not take, without a promise.
    @inline(__always)
    func sendGathered() {
        if writer.isGathering { _ = ByteWrite.sendGathered(with: .init(start: nil, count: 0), on: self) }
    }

    // MARK: The queue

    func enqueue(_ append: (WriteQueue) -> Void) {
        writer.enqueue(append)
        updateCongestion()
        updateInterest()
    }

    /// Makes at most 16 system calls, so that a fast reader does not delay other connections.
    func flush() {
        guard let queue = writer.queue else { return }
        for call in 0..<16 {
            let (result, offered) = queue.withIOVectors { callSend($0) }
            if result == -Int(EAGAIN) {
                if call == 0 { noteSpuriousReadiness(writeCall) }
                break
            }
            if result < 0 {
                let error = SystemError(writeCall, CInt(-result))
                PeerWatching.tellHandler(of: error, at: self)
                return fail(error)
            }
            didSend(result)
            cold?.rare?.writeClock?.noteProgress()
            // All finished writes are removed before the first is fulfilled: its inline handler may end the connection,
            // which must not reject the others.
            for promise in queue.advance(result) { promise.fulfill(()) }
            guard writer.queue === queue else { return }
            // If the kernel took less than offered, it has no more room.
            if queue.isEmpty || result < offered { break }
        }
        if queue.isEmpty { writesDidFinish() }
        noteHeldMemory()
        signalWritableIfNeeded()
    }

    private func writesDidFinish() {
        cold?.rare?.writeClock?.cancelTimer()
        if writer.drained() { sendEnd() }
        ConnectionClose.lingerIfDelivered(self)
        mayBeIdle()
    }

    func withdrawWrite(_ promise: PromiseCore) -> Bool {
        if let rare = cold?.rare, rare.writeLimits.writable === promise {
            rare.writeLimits.writable = nil
            return true
        }
        guard let queue = writer.queue, queue.withdraw(promise) else { return false }
        if queue.isEmpty { writesDidFinish() }
        updateInterest()
        signalWritableIfNeeded()
        return true
    }

    // MARK: Failing

    /// Output that belongs to no write, such as a filter's end record, does not count.
    private var hasUnsentWrites: Bool {
        guard let filter = cold?.filter else { return queuedBytes > 0 }
        return !filter.deferred.isEmpty || writer.hasQueuedPromises
    }

    /// - Parameter losesOutput: true if bytes that have left the queue are lost as well.
    func failWrites(losesOutput: Bool = false) {
        guard let failure = cold?.rare?.failure else { return }
        // The connection then ends with a reset, so that the peer does not take a part of an answer for the whole.
        if losesOutput || hasUnsentWrites, kind.contains(.tcp), lifecycle.hasDescriptor { socket.setResetOnClose() }
        let queued = writer.fail()?.promises ?? []
        for promise in queued + takeUnqueuedPromises() { promise.reject(failure.reported) }
        // `ECANCELED` comes from this side: an abort, a close at its limit, the end of the loop.
        PeerWatching.settle(as: failure.error.code == ECANCELED ? nil : .failed(failure.error), at: self)
        signalWritableIfNeeded()
    }

    func takeUnqueuedPromises() -> [PromiseCore] {
        let deferred = cold?.filter?.takeDeferredPromises() ?? []
        return deferred + (cold?.shutdown.take().map { [$0] } ?? [])
    }

    /// Fails the connection for a reason that is not the kernel's, and resets it. Pending operations and `closed`
    /// report `error`. Releases the connection's memory.
    func abort(because error: SystemError) {
        guard lifecycle.hasDescriptor else { return }
        if !PeerWatching.hasPendingOperation(self) { cold?.attachment?.connectionDidFail(error) }
        noteFailure(error)
        endRead(error)
        failWrites(losesOutput: true)
        release()
    }
}

/// Sends gathered and corked bytes at the end of the turn.
final class FlushJob: Job {
    private let connection: Connection

    private init(_ connection: Connection) {
        self.connection = connection
        super.init()
    }

    static func enqueue(for connection: Connection) {
        if connection.writer.hasFlushJob { return }
        connection.writer.hasFlushJob = true
        connection.loop.enqueueAtEndOfTurn(FlushJob(connection))
    }

    override func run() {
        connection.writer.hasFlushJob = false
        if connection.writer.isGathering { sendGathered() }
        if connection.writer.uncork() { connection.flush() }
        connection.updateInterest()
    }

    private func sendGathered() {
        // Gathered writes are already fulfilled, so they cannot report a failure.
        let notifies = connection.lifecycle == .open && !PeerWatching.hasPendingOperation(connection)
        connection.sendGathered()
        if notifies, let failure = connection.failure { connection.attachment?.connectionDidFail(failure) }
    }

    // The promises of its writes report the outcome.
    override var isReportedUndelivered: Bool { false }

    /// Ends the writes of a connection that is not registered with the poller.
    override func discardAndRelease() {
        connection.loopWillEnd()
        super.discardAndRelease()
    }
}

extension iovec {
    /// Wraps `bytes`, which the call only reads.
    init(of bytes: UnsafeRawBufferPointer) {
        self.init(iov_base: UnsafeMutableRawPointer(mutating: bytes.baseAddress), iov_len: bytes.count)
    }
}
