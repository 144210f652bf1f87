import Glibc
import Reactor

// The way of written bytes to the kernel: they are sent at once if possible, and wait in the queue otherwise.

extension Connection {
    static var defaultWriteQueueLimit: Int { 4 << 20 }

    /// The memory, in bytes, that writes may take while they wait for the kernel. Once they take as much, further
    /// writes are rejected with `ENOBUFS`. The default is 4 MiB; a single write may be larger. Code that waits for each
    /// write before the next one stays far below the limit.
    ///
    /// Each waiting write, even an empty one, counts with its bytes and with 192 more, for its promise and its entry in
    /// the queue. The default therefore admits 4 MiB of large writes, or 21,700 writes of one byte.
    public var writeQueueLimit: Int {
        get { cold?.writeQueueLimit ?? Self.defaultWriteQueueLimit }
        set {
            ensuredColdState.writeQueueLimit = newValue
            updateCongestion()
            signalWritableIfNeeded()
        }
    }

    /// A write of at most this size that follows another of its turn waits for the end of the turn, and leaves with the
    /// writes that have joined it. A thousand writes in one handler therefore take two calls, and so do the writes of a
    /// hundred connections to one.
    static var corkedSize: Int { 4096 }

    @usableFromInline
    func send(_ bytes: [UInt8]) -> Promise<Void> {
        loop.assertOwner()
        guard canWrite else { return sendDiverted(bytes) }
        var sent = 0
        if !writer.isQueued {
            if bytes.isEmpty { return .value }
            sent = bytes.withUnsafeBytes { sendAtOnce($0) }
            if sent == bytes.count { return .value }
            if sent < 0 { return Promise(refused: failure!) }
        } else if isFull {
            return refuseAsFull()
        }
        let core = WritePromise(Void.self, self)
        let queue = writer.queue ?? WriteQueue()
        queue.append(bytes, from: sent, core)
        return queued(core, queue)
    }

    /// Sends lent bytes; copies those that the kernel does not take.
    @usableFromInline
    func send(_ bytes: UnsafeRawBufferPointer) -> Promise<Void> {
        loop.assertOwner()
        guard canWrite else { return sendDiverted(bytes) }
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
        let queue = writer.queue ?? WriteQueue()
        queue.append(UnsafeRawBufferPointer(rebasing: bytes[sent...]), sent > 0, core)
        return queued(core, queue)
    }

    /// Sends several buffers as one write; small ones are joined.
    @usableFromInline
    func send(_ buffers: [[UInt8]]) -> Promise<Void> {
        let count = buffers.reduce(0) { $0 + $1.count }
        if count <= WriteQueue.coalesceLimit { return send(joined(buffers)) }
        loop.assertOwner()
        sendGathered()
        guard canWrite else { return sendDiverted(joined(buffers)) }
        let isFirst = !writer.isQueued
        if !isFirst && isFull { return refuseAsFull() }
        let core = WritePromise(Void.self, self)
        let queue = writer.queue ?? WriteQueue()
        queue.append(buffers, core)
        writer.enqueue(queue)
        if isFirst {
            writer.turnOfLastSend = UInt32(truncatingIfNeeded: loop.turnNumber)
            flush()
            if !writer.isQueued { return Promise(core) }
        }
        return queued(core, queue)
    }

    private func joined(_ buffers: [[UInt8]]) -> [UInt8] {
        var joined: [UInt8] = []
        joined.reserveCapacity(buffers.reduce(0) { $0 + $1.count })
        for buffer in buffers { joined += buffer }
        return joined
    }

    /// - Returns: the number of bytes that were gathered or that the kernel has taken, zero if they are to be queued;
    ///   below zero if the connection has failed.
    @inline(__always)
    func sendAtOnce(_ bytes: UnsafeRawBufferPointer) -> Int {
        if hasInput || writer.isGathering { return gatherOrSend(bytes) }
        return sendOrCork(bytes)
    }

    @inline(__always)
    func sendOrCork(_ bytes: UnsafeRawBufferPointer) -> Int {
        let turn = UInt32(truncatingIfNeeded: loop.turnNumber)
        if turn == writer.turnOfLastSend && bytes.count <= Self.corkedSize {
            writer.cork()
            enqueueFlushJob()
            return 0
        }
        let result = transmit(bytes.baseAddress!, bytes.count)
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

    /// Makes one system call: send(2), or write(2) if the descriptor is no socket.
    @inline(__always)
    func transmit(_ bytes: UnsafeRawPointer, _ count: Int) -> Int {
        if traits.contains(.socket) { return loop.send(fd, bytes, count) }
        return transmitDiverted(bytes, count)
    }

    private func transmit(_ pieces: UnsafeBufferPointer<iovec>) -> Int {
        let first = pieces.baseAddress!
        if pieces.count == 1 { return transmit(first.pointee.iov_base, first.pointee.iov_len) }
        if kind.contains(.socket) { return loop.kernel.sendVector(fd, first, pieces.count) }
        return loop.kernel.writeVector(fd, first, pieces.count)
    }

    @inline(__always)
    func didSend(_ count: Int) {
        bytesSent += count
        noteActivity()
    }

    @inline(__always)
    var canWrite: Bool { lifecycle == .open && writer.takesWrites && traits.contains(.writes) }

    /// The error for a write that cannot be accepted.
    var refusal: any Error {
        if lifecycle.isClosed {
            return SystemError(writeCall, EBADF, detail: "the connection is closed")
        }
        if !kind.contains(.writes) { return SystemError(writeCall, EBADF, detail: "this end of the pipe only reads") }
        if let failure { return reported(failure) }
        return SystemError(writeCall, EPIPE, detail: "this side was shut down")
    }

    var isFull: Bool { writer.queue.map { $0.weight >= writeQueueLimit } ?? false }

    func refuseAsFull() -> Promise<Void> { Promise(refused: SystemError(writeCall, ENOBUFS, detail: fullQueue)) }

    /// What a queue that is full holds.
    var fullQueue: String {
        var (bytes, writes, weight) = writer.queue.map { ($0.count, $0.writes, $0.weight) } ?? (0, 0, 0)
        if let filter = cold?.filter {
            bytes += filter.deferredBytes
            writes += filter.deferredWriteCount
            weight += filter.deferredWeight
        }
        return
            "\(bytes) bytes in \(writes) writes are waiting, which take \(weight) bytes; the limit is \(writeQueueLimit)"
    }

    /// Updates the state after a write was queued.
    @inline(__always)
    private func queued(_ core: WritePromise, _ queue: WriteQueue) -> Promise<Void> {
        noteQueued(queue)
        return Promise(core)
    }

    func noteQueued(_ queue: WriteQueue) {
        writer.enqueue(queue)
        updateCongestion()
        updateInterest()
    }

    // MARK: The queue

    func enqueueFlushJob() {
        if writer.hasFlushJob { return }
        writer.hasFlushJob = true
        loop.enqueueAtEndOfTurn(FlushJob(self))
    }

    fileprivate func runFlushJob() {
        writer.hasFlushJob = false
        sendGathered()
        if writer.uncork() { flush() }
        updateInterest()
    }

    /// Sends the queue, and then the end if it is due. Makes at most 16 calls, so that one connection with a fast
    /// reader does not delay the others.
    func flush() {
        guard let queue = writer.queue else { return }
        for call in 0..<16 {
            let (result, offered) = queue.withIOVectors { transmit($0) }
            if result == -Int(EAGAIN) {
                if call == 0 { noteFutileReadiness(writeCall) }
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
        cold?.attachment?.connectionMayBeIdle(self)
    }

    func withdrawWrite(_ promise: PromiseCore) -> Bool {
        if cold?.writable === promise {
            cold?.writable = nil
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

    /// Whether written bytes wait for the kernel. The rest of a filter's output is its own, such as its end record.
    private var hasUnsentWrites: Bool {
        guard let filter = cold?.filter else { return queuedBytes > 0 }
        return filter.hasDeferredWrites || writer.queue?.promises.isEmpty == false
    }

    /// Rejects the writes that wait, and drops their bytes.
    /// - Parameter losesOutput: whether bytes that are no longer queued are lost as well.
    func failWrites(losesOutput: Bool = false) {
        guard let failure else { return }
        // The end is a reset then, so that the peer does not take a part of an answer for the whole.
        if losesOutput || hasUnsentWrites, kind.contains(.tcp), lifecycle.hasDescriptor { socket.setResetOnClose() }
        cold?.gathered = []
        let deferred = cold?.filter?.takeDeferredPromises() ?? []
        let promises = (writer.fail()?.promises ?? []) + deferred + (cold?.ending.map { [$0] } ?? [])
        cold?.ending = nil
        for promise in promises { promise.reject(reported(failure)) }
        if watchedEnds != 0 { settlePeerWatches(as: .failed(failure)) }
        signalWritableIfNeeded()
    }
}

/// Sends the gathered and the corked bytes of a connection at the end of the turn.
private final class FlushJob: Job {
    private let connection: Connection

    init(_ connection: Connection) {
        self.connection = connection
        super.init()
    }

    override func run() { connection.runFlushJob() }

    // The promises of its writes report what happened to them.
    override var isReportedUndelivered: Bool { false }

    /// The loop ends: the connection has registered no interest with the poller, so this job ends its writes.
    override func discardAndRelease() {
        connection.loopWillEnd()
        super.discardAndRelease()
    }
}
