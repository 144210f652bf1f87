import Glibc
import Reactor

// The way of written bytes to the kernel: they are sent at once if possible, and wait in the queue otherwise.

extension Connection {
    @usableFromInline
    func send(_ bytes: [UInt8]) -> Promise<Void> {
        bytes.withUnsafeBytes { span in send(span) { $0.append(bytes, from: $1, $2) } }
    }

    /// Sends lent bytes; copies those that the kernel does not take.
    @usableFromInline
    func send(_ bytes: UnsafeRawBufferPointer) -> Promise<Void> {
        send(bytes) { $0.append(UnsafeRawBufferPointer(rebasing: bytes[$1...]), $1 > 0, $2) }
    }

    /// - Parameter append: appends the bytes behind those that were sent to the queue.
    @inline(__always)
    private func send(
        _ bytes: UnsafeRawBufferPointer, _ append: (WriteQueue, _ sent: Int, WritePromise) -> Void
    ) -> Promise<Void> {
        loop.assertOwner()
        guard canWrite else { return sendFiltered(bytes) }
        var sent = 0
        if !writer.isQueued {
            if bytes.isEmpty { return .value }
            sent = sendAtOnce(bytes)
            if sent == bytes.count { return .value }
            if sent < 0 { return Promise(refused: failure!) }
        } else if isFull {
            return refuseAsFull()
        }
        let core = WritePromise(Void.self, self)
        enqueue { append($0, sent, core) }
        return Promise(core)
    }

    /// Sends several buffers as one write; small ones are joined.
    @usableFromInline
    func send(_ buffers: [[UInt8]]) -> Promise<Void> {
        let count = buffers.reduce(0) { $0 + $1.count }
        if count <= WriteQueue.coalesceLimit { return send(Array(buffers.joined())) }
        loop.assertOwner()
        sendGathered()
        guard canWrite else { return Array(buffers.joined()).withUnsafeBytes { sendFiltered($0) } }
        let isFirst = !writer.isQueued
        if !isFirst && isFull { return refuseAsFull() }
        let core = WritePromise(Void.self, self)
        writer.enqueue { $0.append(buffers, core) }
        if isFirst {
            writer.turnOfLastSend = turn
            flush()
        }
        if writer.isQueued { queueDidGrow() }
        return Promise(core)
    }

    /// Writes without a promise.
    /// - Returns: whether `bytes` were sent or queued.
    func post(_ bytes: [UInt8]) -> Bool {
        guard canWrite else {
            let written = bytes.withUnsafeBytes { sendFiltered($0) }
            written.catch(policy: .allErrors) { _ in }
            return !written.isRejected
        }
        let sent = writer.isQueued ? 0 : bytes.withUnsafeBytes { sendAtOnce($0) }
        if sent >= 0 && sent < bytes.count { enqueue { $0.append(bytes, from: sent, nil) } }
        return sent >= 0
    }

    /// A write that cannot go straight to the kernel: through the filter, or refused.
    @inline(never)
    private func sendFiltered(_ bytes: UnsafeRawBufferPointer) -> Promise<Void> {
        guard lifecycle.isOpen, let layer else { return Promise(refused: refusalToWrite) }
        return layer.write(bytes)
    }

    // MARK: At once

    var turn: UInt32 { UInt32(truncatingIfNeeded: loop.turnNumber) }

    /// - Returns: the number of bytes that were gathered or that the kernel has taken, zero if they are to be queued;
    ///   below zero if the connection has failed.
    @inline(__always)
    private func sendAtOnce(_ bytes: UnsafeRawBufferPointer) -> Int {
        if hasInput || writer.isGathering { return gatherOrSend(bytes) }
        return sendOrCork(bytes)
    }

    @inline(__always)
    func sendOrCork(_ bytes: UnsafeRawBufferPointer) -> Int {
        if writer.corks(bytes.count, in: turn) {
            enqueueFlushJob()
            return 0
        }
        return transmit(bytes)
    }

    /// Makes one system call.
    /// - Returns: the number of bytes that the kernel has taken; below zero if the connection has failed.
    @inline(__always)
    func transmit(_ bytes: UnsafeRawBufferPointer) -> Int {
        let result = descriptor.send(bytes.baseAddress!, bytes.count)
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

    /// Whether writes go straight to the kernel.
    @inline(__always)
    private var canWrite: Bool {
        lifecycle == .open && path == .direct && writer.takesWrites && kind.contains(.writes)
    }

    /// Whether a write is accepted.
    var takesWrites: Bool { canWrite || layer?.takesWrites == true }

    /// The error for a write that cannot be accepted.
    var refusalToWrite: any Error {
        descriptor.refusal(of: writeCall, .writes, isClosed: isClosed) ?? reportedFailure
            ?? SystemError(writeCall, EPIPE, detail: "this side was shut down")
    }

    func refuseAsFull() -> Promise<Void> { Promise(refused: SystemError(writeCall, ENOBUFS, detail: fullQueue)) }

    /// What a queue that is full holds.
    var fullQueue: String {
        let (queue, deferred) = (writer.queue, layer?.deferred)
        let bytes = (queue?.count ?? 0) + (deferred?.byteCount ?? 0)
        let writes = (queue?.writes ?? 0) + (deferred?.count ?? 0)
        let weight = (queue?.weight ?? 0) + (deferred?.weight ?? 0)
        return
            "\(bytes) bytes in \(writes) writes are waiting, which take \(weight) bytes; the limit is \(writeQueueLimit)"
    }

    // MARK: The queue

    func enqueue(_ append: (WriteQueue) -> Void) {
        writer.enqueue(append)
        queueDidGrow()
    }

    private func queueDidGrow() {
        updateCongestion()
        updateInterest()
    }

    func enqueueFlushJob() {
        if writer.hasFlushJob { return }
        writer.hasFlushJob = true
        loop.enqueueAtEndOfTurn(FlushJob(self))
    }

    /// Sends the queue, and then the end if it is due. Makes at most 16 calls, so that one connection with a fast
    /// reader does not delay the others.
    func flush() {
        guard let queue = writer.queue else { return }
        for call in 0..<16 {
            let (result, offered) = queue.withIOVectors { descriptor.send($0) }
            if result == -Int(EAGAIN) {
                if call == 0 { noteSpuriousReadiness(writeCall) }
                break
            }
            if result < 0 {
                let error = SystemError(writeCall, CInt(-result))
                tellHandler(of: error)
                return fail(error)
            }
            didSend(result)
            // All finished writes are removed before the first is fulfilled: its inline handler may end the connection,
            // which must not reject the others.
            for promise in queue.advance(result) { promise.fulfill(()) }
            guard writer.queue === queue else { return }
            // The kernel took less than it was offered, so it has no more room.
            if queue.isEmpty || result < offered { break }
        }
        if queue.isEmpty { writesDidFinish() }
        noteHeldMemory()
        signalWritableIfNeeded()
    }

    private func writesDidFinish() {
        if writer.drained() { sendEnd() }
        lingerIfDelivered()
        mayBeIdle()
    }

    func withdrawWrite(_ promise: PromiseCore) -> Bool {
        if cold?.writeLimits.writable === promise {
            cold?.writeLimits.writable = nil
            return true
        }
        guard let queue = writer.queue, let write = promise as? WritePromise, queue.withdraw(write) else {
            return false
        }
        if queue.isEmpty { writesDidFinish() }
        updateInterest()
        signalWritableIfNeeded()
        return true
    }

    // MARK: Failing

    /// Whether written bytes wait for the kernel. The rest of a filter's output is its own, such as its end record.
    private var hasUnsentWrites: Bool {
        guard let layer else { return queuedBytes > 0 }
        return !layer.deferred.isEmpty || writer.hasQueuedPromises
    }

    /// Rejects the writes that wait, and drops their bytes.
    /// - Parameter losesOutput: whether bytes that are no longer queued are lost as well.
    func failWrites(losesOutput: Bool = false) {
        guard let failure = cold?.failure else { return }
        // The end is a reset then, so that the peer does not take a part of an answer for the whole.
        if losesOutput || hasUnsentWrites, kind.contains(.tcp), lifecycle.hasDescriptor { socket.setResetOnClose() }
        let queued = writer.fail()?.promises ?? []
        for promise in queued + takeUnqueuedPromises() { promise.reject(failure.reported) }
        settlePeerWatches(as: .failed(failure.error))
        signalWritableIfNeeded()
    }

    /// The promises of deferred writes, and of a `shutdownWrite`.
    func takeUnqueuedPromises() -> [PromiseCore] {
        let deferred = layer?.takeDeferredPromises() ?? []
        return deferred + (cold?.ending.shutdown.take().map { [$0] } ?? [])
    }

    /// Fails the connection for a reason that is not the kernel's, and resets it: what waits, and `closed`, report `error`.
    /// What the connection holds is released.
    func abort(because error: SystemError) {
        guard lifecycle.hasDescriptor else { return }
        cold?.attachment?.connectionDidFail(error)
        noteFailure(error)
        endRead(error)
        failWrites(losesOutput: true)
        release()
    }
}

/// Sends the gathered and the corked bytes of a connection at the end of the turn.
private final class FlushJob: Job {
    private let connection: Connection

    init(_ connection: Connection) {
        self.connection = connection
        super.init()
    }

    override func run() {
        connection.writer.hasFlushJob = false
        connection.sendGathered()
        if connection.writer.uncork() { connection.flush() }
        connection.updateInterest()
    }

    // The promises of its writes report what happened to them.
    override var isReportedUndelivered: Bool { false }

    /// The loop ends: the connection has registered no interest with the poller, so this job ends its writes.
    override func discardAndRelease() {
        connection.loopWillEnd()
        super.discardAndRelease()
    }
}
