import Glibc
import Reactor

// The way of written bytes through a filter: what it makes of them is queued, and leaves as other writes do.

extension Connection {
    /// Whether the filter, if there is one, takes writes.
    var canWriteFiltered: Bool {
        guard lifecycle == .open, writer.takesWrites, let filter = cold?.filter, failure == nil else { return false }
        return filter.handshake == nil && !filter.isEndDue && !filter.hasSentEnd
    }

    @inline(never)
    func sendDiverted(_ bytes: [UInt8]) -> Promise<Void> { bytes.withUnsafeBytes { sendDiverted($0) } }

    /// A write that cannot go straight to the kernel: through the filter, or refused.
    @inline(never)
    func sendDiverted(_ bytes: UnsafeRawBufferPointer) -> Promise<Void> {
        guard canWriteFiltered, let filter = cold?.filter else { return Promise(refused: refusalOfDivertedWrite) }
        let isFirst = !writer.isQueued && !filter.hasDeferredWrites && !filter.isCalling
        if !isFirst && isFullFiltered { return refuseAsFull() }
        if isFirst && bytes.isEmpty { return .value }
        let core = WritePromise(Void.self, self)
        if filter.isCalling || filter.hasDeferredWrites {
            filter.deferWrite(InstalledFilter.DeferredWrite(bytes: [UInt8](bytes), promise: core))
        } else if bytes.isEmpty {
            queueOutput([], filter, core)
        } else {
            let output = filter.call { try $0.write(bytes.bytes, &$1) }
            let isDeferred = defers(filter, output)
            if isDeferred { filter.deferFirst(InstalledFilter.DeferredWrite(bytes: [UInt8](bytes), promise: core)) }
            takeUp(output, filter, isDeferred ? nil : core)
            proceed(filter)
        }
        // The filter may have failed, or the connection may have been closed, in the call.
        if canWriteFiltered, queuedBytes >= writeWatermarks.high || isFullFiltered { writer.isCongested = true }
        noteHeldMemory()
        updateInterest()
        return Promise(core)
    }

    private var refusalOfDivertedWrite: any Error {
        guard lifecycle == .open, let filter = cold?.filter, failure == nil else { return refusal }
        if filter.handshake != nil {
            return SystemError(writeCall, EBUSY, detail: "the handshake of the filter has not finished")
        }
        return SystemError(writeCall, EPIPE, detail: "this side was shut down")
    }

    var isFullFiltered: Bool {
        (writer.queue?.weight ?? 0) + (cold?.filter?.deferredWeight ?? 0) >= writeQueueLimit
    }

    /// Makes one system call for one piece: send(2), or write(2) if the descriptor is no socket.
    @inline(never)
    func transmitDiverted(_ bytes: UnsafeRawPointer, _ count: Int) -> Int {
        if kind.contains(.socket) { return loop.kernel.send(fd, bytes, count) }
        return loop.kernel.write(fd, bytes, count)
    }

    // MARK: Output

    /// Queues output of the filter, and sends it at once unless it can leave with other writes of the turn.
    func queueOutput(_ bytes: [UInt8], _ filter: InstalledFilter, _ write: WritePromise?) {
        if bytes.isEmpty && write == nil { return }
        // Behind its own end a filter has nothing to say.
        guard writer.takesWrites, lifecycle == .open || lifecycle == .flushing else {
            write?.reject(refusal)
            return
        }
        if bytes.isEmpty && !writer.isQueued {
            write?.fulfill(())
            return
        }
        let isFirst = !writer.isQueued
        let turn = UInt32(truncatingIfNeeded: loop.turnNumber)
        let isCorked = isFirst && write != nil && turn == writer.turnOfLastSend && bytes.count <= Self.corkedSize
        if isFirst && !isCorked && bytes.count <= WriteQueue.coalesceLimit { return sendFirst(bytes, filter, write) }
        let queue = writer.queue ?? WriteQueue()
        queue.appendFinal(bytes, write)
        writer.enqueue(queue)
        if write == nil { filter.noteOwnOutput(bytes.count, end: bytesSent + queue.count) }
        guard isFirst else { return }
        if isCorked {
            writer.cork()
            enqueueFlushJob()
        } else {
            writer.turnOfLastSend = turn
            flush()
        }
    }

    /// Sends output before which nothing waits. Usually the kernel takes all of it, and no queue is needed.
    private func sendFirst(_ bytes: [UInt8], _ filter: InstalledFilter, _ write: WritePromise?) {
        writer.turnOfLastSend = UInt32(truncatingIfNeeded: loop.turnNumber)
        let result = bytes.withUnsafeBytes { transmitDiverted($0.baseAddress!, $0.count) }
        let sent = max(result, 0)
        if sent > 0 { didSend(sent) }
        if sent == bytes.count {
            write?.fulfill(())
            return lingerIfDelivered()
        }
        let queue = WriteQueue()
        queue.appendFinal(Array(bytes[sent...]), write)
        writer.enqueue(queue)
        if write == nil { filter.noteOwnOutput(bytes.count - sent, end: bytesSent + queue.count) }
        // Rejects what was just queued.
        if result < 0 && result != -Int(EAGAIN) { fail(SystemError(writeCall, CInt(-result))) }
    }

    /// Calls the filter with the deferred writes, in their order, until it needs further input.
    func sendDeferredWrites(_ filter: InstalledFilter) {
        while isCurrent(filter), failure == nil, !filter.isCalling, let next = filter.takeNextDeferred() {
            if next.bytes.isEmpty {
                queueOutput([], filter, next.promise)
                continue
            }
            let output = filter.call { filter, output in
                try next.bytes.withUnsafeBytes { try filter.write($0.bytes, &output) }
            }
            let isDeferred = defers(filter, output)
            if isDeferred { filter.deferFirst(next) }
            takeUp(output, filter, isDeferred ? nil : next.promise)
            if isDeferred { return }
        }
    }

    /// Whether the filter needs input before the write that it was called with. False if the call has ended the connection.
    private func defers(_ filter: InstalledFilter, _ output: FilterOutput) -> Bool {
        output.waitsForInput && output.error == nil && isCurrent(filter) && failure == nil
    }

    // MARK: The end

    /// Why `shutdownWrite` is refused, if the connection has failed or its filter is not ready.
    var refusalOfFilteredShutdown: (any Error)? {
        if let reportedFailure { return reportedFailure }
        if cold?.filter?.handshake == nil { return nil }
        return SystemError(.shutdown, EBUSY, detail: "the handshake of the filter has not finished")
    }

    /// Queues the end record of the filter, unless there is none.
    /// - Returns: false if it must wait until the filter has taken all writes. `sendDueEnd` follows then.
    func queueEndRecord() -> Bool {
        guard traits.isDiverted, let filter = cold?.filter, !filter.hasSentEnd, filter.isReady, failure == nil else {
            return true
        }
        if filter.isCalling || filter.hasDeferredWrites {
            filter.isEndDue = true
            return false
        }
        filter.isEndDue = false
        filter.hasSentEnd = true
        call(filter) { try $0.end(&$1) }
        proceed(filter)
        updateInterest()
        return true
    }

    /// Sends the end that had to wait for the filter.
    func sendDueEnd(_ filter: InstalledFilter) {
        filter.isEndDue = false
        if lifecycle == .flushing {
            if !writer.isQueued { lingerIfDelivered() }
            return
        }
        guard queueEndRecord(), lifecycle.isOpen, failure == nil else { return }
        if writer.end() == .sendEnd { sendEnd() }
    }
}
