import Glibc
import Reactor

// What becomes of the bytes of a write: they are sent at once where that can be, and wait in the queue where it cannot.

extension Connection {
    static var defaultWriteQueueLimit: Int { 4 << 20 }

    /// How much memory writes that wait for the kernel may take, in bytes; a write that finds as much taken is rejected
    /// with `ENOBUFS`. Code that waits for each write before the next never comes near it. 4 MiB; a single write may be
    /// larger.
    ///
    /// Each write that waits counts with its bytes and 192 more, for its promise and its place in the queue; an empty one
    /// too. So 4 MiB are 4 MiB of large writes, and 21,700 writes of one byte.
    public var writeQueueLimit: Int {
        get { cold?.writeQueueLimit ?? Self.defaultWriteQueueLimit }
        set {
            makeColdState.writeQueueLimit = newValue
            updateCongestion()
            signalWritableIfNeeded()
        }
    }

    /// A small write that follows one of the same turn waits for the end of the turn, and leaves with those that come
    /// meanwhile: a thousand in one handler are two calls, and so are those of a hundred connections to one.
    private static var corkedSize: Int { 4096 }

    @usableFromInline
    func send(_ bytes: [UInt8]) -> Promise<Void> {
        loop.assertOwner()
        guard canWrite else { return Promise(error: refusal) }
        var sent = 0
        if !writer.isQueued {
            if bytes.isEmpty { return .value }
            sent = bytes.withUnsafeBytes { sendAtOnce($0) }
            if sent == bytes.count { return .value }
            if sent < 0 { return Promise(error: failure!) }
        } else if isFull {
            return refuseAsFull()
        }
        let core = WritePromise(Void.self, self)
        let queue = writer.queue ?? WriteQueue()
        queue.append(bytes, from: sent, core)
        return queued(core, queue)
    }

    /// The same for bytes that are only lent.
    @usableFromInline
    func send(_ bytes: UnsafeRawBufferPointer) -> Promise<Void> {
        loop.assertOwner()
        guard canWrite else { return Promise(error: refusal) }
        var sent = 0
        if !writer.isQueued {
            if bytes.isEmpty { return .value }
            sent = sendAtOnce(bytes)
            if sent == bytes.count { return .value }
            if sent < 0 { return Promise(error: failure!) }
        } else if isFull {
            return refuseAsFull()
        }
        let core = WritePromise(Void.self, self)
        let queue = writer.queue ?? WriteQueue()
        queue.append(UnsafeRawBufferPointer(rebasing: bytes[sent...]), sent > 0, core)
        return queued(core, queue)
    }

    /// The same for several buffers that leave as one.
    @usableFromInline
    func send(_ buffers: [[UInt8]]) -> Promise<Void> {
        let count = buffers.reduce(0) { $0 + $1.count }
        if count <= WriteQueue.coalesceLimit {
            var joined: [UInt8] = []
            joined.reserveCapacity(count)
            for buffer in buffers { joined += buffer }
            return send(joined)
        }
        loop.assertOwner()
        guard canWrite else { return Promise(error: refusal) }
        sendGathered()
        guard canWrite else { return Promise(error: refusal) }
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

    /// Answers how many bytes the kernel took, none if they had better wait; below zero, the connection has failed.
    @inline(__always)
    private func sendAtOnce(_ bytes: UnsafeRawBufferPointer) -> Int {
        if hasInput || writer.isGathering { return gatherOrSend(bytes) }
        return sendOrCork(bytes)
    }

    @inline(__always)
    func sendOrCork(_ bytes: UnsafeRawBufferPointer) -> Int {
        let turn = UInt32(truncatingIfNeeded: loop.turnNumber)
        if turn == writer.turnOfLastSend && bytes.count <= Self.corkedSize {
            writer.cork()
            flushAtEndOfTurn()
            return 0
        }
        let result = transmit(bytes.baseAddress!, bytes.count)
        if result < 0 && result != -Int(EAGAIN) {
            fail(SystemError(writeCall, CInt(-result)))
            return -1
        }
        if result > 0 {
            writer.turnOfLastSend = turn
            didSend(result)
        }
        return max(result, 0)
    }

    /// One call, of whichever kind.
    @inline(__always)
    func transmit(_ bytes: UnsafeRawPointer, _ count: Int) -> Int {
        if traits.contains(.socket) { return loop.kernel.send(fd, bytes, count) }
        return loop.kernel.write(fd, bytes, count)
    }

    private func transmit(_ pieces: UnsafeBufferPointer<iovec>) -> Int {
        let first = pieces.baseAddress!
        if pieces.count == 1 { return transmit(first.pointee.iov_base, first.pointee.iov_len) }
        if traits.contains(.socket) { return loop.kernel.sendVector(fd, first, pieces.count) }
        return loop.kernel.writeVector(fd, first, pieces.count)
    }

    @inline(__always)
    func didSend(_ count: Int) {
        bytesSent += count
        noteActivity()
    }

    @inline(__always)
    var canWrite: Bool { lifecycle == .open && writer.takesWrites && traits.contains(.writes) }

    /// Why a write cannot be taken.
    private var refusal: SystemError {
        if lifecycle.isClosed {
            return SystemError(writeCall, EBADF, detail: "the connection is closed")
        }
        if !traits.contains(.writes) { return SystemError(writeCall, EBADF, detail: "this end of the pipe only reads") }
        if let failure { return failure }
        return SystemError(writeCall, EPIPE, detail: "this side was shut down")
    }

    var isFull: Bool { writer.queue.map { $0.weight >= writeQueueLimit } ?? false }

    private func refuseAsFull() -> Promise<Void> {
        let (bytes, writes, weight) = writer.queue.map { ($0.count, $0.writes, $0.weight) } ?? (0, 0, 0)
        let detail =
            "\(bytes) bytes in \(writes) writes are waiting, which take \(weight) bytes; the limit is \(writeQueueLimit)"
        return Promise(error: SystemError(writeCall, ENOBUFS, detail: detail))
    }

    /// A write stands in the queue.
    private func queued(_ core: WritePromise, _ queue: WriteQueue) -> Promise<Void> {
        writer.enqueue(queue)
        updateCongestion()
        updateInterest()
        return Promise(core)
    }

    // MARK: The queue

    func flushAtEndOfTurn() {
        if writer.hasJob { return }
        writer.hasJob = true
        loop.enqueueAtEndOfTurn(FlushJob(self))
    }

    fileprivate func turnEnds() {
        writer.hasJob = false
        sendGathered()
        if writer.uncork() { flush() }
        updateInterest()
    }

    /// Sends what is queued, and the end when nothing is left. At most 16 calls a turn, so that one connection with a
    /// fast reader does not hold up the others.
    func flush() {
        guard let queue = writer.queue else { return }
        for call in 0..<16 {
            let (result, offered) = queue.withIOVectors { transmit($0) }
            if result == -Int(EAGAIN) {
                if call == 0 { noteFutileReadiness(writeCall) }
                break
            }
            if result < 0 { return fail(SystemError(writeCall, CInt(-result))) }
            didSend(result)
            // All are taken out first: an inline handler of one may end the connection, and the others were sent all
            // the same.
            for promise in queue.advance(result) { promise.fulfill(()) }
            guard writer.queue === queue else { return }
            // Less than it was offered: the kernel has no more room.
            if queue.isEmpty || result < offered { break }
        }
        if queue.isEmpty { writesDidFinish() }
        signalWritableIfNeeded()
    }

    private func writesDidFinish() {
        if writer.drained() { sendEnd() }
        lingerIfDelivered()
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

    func failWrites() {
        guard let failure else { return }
        cold?.gathered = []
        let promises = (writer.fail()?.promises ?? []) + (cold?.ending.map { [$0] } ?? [])
        cold?.ending = nil
        for promise in promises { promise.reject(failure) }
        if watchedEnds != 0 { settlePeerWatches(as: .failed(failure)) }
        signalWritableIfNeeded()
    }
}

/// Sends what a connection has held back, at the end of the turn.
private final class FlushJob: Job {
    private let connection: Connection

    init(_ connection: Connection) {
        self.connection = connection
        super.init()
    }

    override func run() { connection.turnEnds() }

    // Its writes have promises, whose handlers are told.
    override var isReportedUndelivered: Bool { false }

    /// The loop ends, and the poller did not know that something waits.
    override func discardAndRelease() {
        connection.loopWillEnd()
        super.discardAndRelease()
    }
}
