import Promises
import Reactor
import ReactorLibc

extension InstalledFilter {
    var takesWrites: Bool {
        let connection = connection
        let isOpen = connection.lifecycle == .open && connection.writer.takesWrites && connection.failure == nil
        return isOpen && !isInHandshake && endRecord == .open
    }

    func write(_ bytes: UnsafeRawBufferPointer) -> Promise<Void> {
        let connection = connection
        guard takesWrites else { return Promise(refused: connection.refusalToWrite) }
        let isFirst = !connection.writer.isQueued && deferred.isEmpty && !isCalling
        if !isFirst && connection.isFull { return Promise(refused: ByteWrite.refusalAsFull(connection)) }
        if isFirst && bytes.isEmpty { return .value }
        let core = PromiseCore.ofWrite(by: connection)
        if isCalling || !deferred.isEmpty {
            deferred.append(([UInt8](bytes), core))
            connection.updateCongestion()
        } else {
            pass(bytes, core)
            proceed()
        }
        connection.updateInterest()
        return Promise(core)
    }

    /// Defers a write that needs input first.
    /// - Parameter array: the array that contains `bytes`, if they need not be copied.
    /// - Returns: false if it was deferred.
    @discardableResult
    private func pass(_ bytes: UnsafeRawBufferPointer, of array: [UInt8]? = nil, _ write: PromiseCore) -> Bool {
        if bytes.isEmpty {
            queueOutput([], write)
            return true
        }
        let output = output { try $0.write(bytes.bytes, &$1) }
        // Not deferred if the call has ended the connection.
        let isDeferred = output.waitsForInput && output.error == nil && isCurrent && connection.failure == nil
        if isDeferred { deferred.insertFirst((array ?? [UInt8](bytes), write)) }
        takeUp(output, isDeferred ? nil : write)
        return !isDeferred
    }

    func sendDeferredWrites() {
        while isCurrent, connection.failure == nil, !isCalling, let next = deferred.takeFirst() {
            let isTaken = next.bytes.withUnsafeBytes { pass($0, of: next.bytes, next.promise) }
            if !isTaken { return }
        }
    }

    // MARK: Output

    /// Sends the output at once unless it can leave with other writes of the turn.
    func queueOutput(_ bytes: [UInt8], _ write: PromiseCore?) {
        let connection = connection
        if bytes.isEmpty && write == nil { return }
        // After its end record a filter sends nothing.
        guard connection.writer.takesWrites, connection.lifecycle == .open || connection.lifecycle == .flushing else {
            write?.reject(connection.refusalToWrite)
            return
        }
        if connection.writer.isQueued {
            enqueue(bytes, write)
            if write != nil { sendWithOwnOutput() }
        } else if bytes.isEmpty {
            write?.fulfill(())
        } else if write == nil && expectsWrite && bytes.count <= WriteQueue.coalesceLimit {
            connection.writer.cork()
            enqueue(bytes, nil)
            FlushJob.enqueue(for: connection)
        } else if write != nil && connection.writer.corks(bytes.count, in: connection.turn) {
            enqueue(bytes, write)
            FlushJob.enqueue(for: connection)
        } else {
            sendFirst(bytes, write)
        }
    }

    /// Sends filter output that has waited for the first write of its turn, with that write.
    private func sendWithOwnOutput() {
        let connection = connection
        guard connection.writer.turnOfLastSend != connection.turn, connection.writer.uncork() else { return }
        connection.writer.turnOfLastSend = connection.turn
        connection.flush()
    }

    private func enqueue(_ bytes: [UInt8], from sent: Int = 0, _ write: PromiseCore?) {
        connection.writer.enqueue { $0.append(bytes, from: sent, isFinal: true, write) }
    }

    /// Usually the kernel takes all of it, and no queue is needed.
    private func sendFirst(_ bytes: [UInt8], _ write: PromiseCore?) {
        let connection = connection
        let sent = bytes.withUnsafeBytes { connection.transmit($0, in: connection.turn) }
        if sent < 0 {
            write?.reject(connection.reportedFailure!)
        } else if sent == bytes.count {
            write?.fulfill(())
        } else {
            enqueue(bytes, from: sent, write)
        }
    }

    /// Called when the peer has ended its stream: the writes need input.
    func endDeferredWrites() {
        guard !deferred.isEmpty, connection.failure == nil, !isRemoved else { return }
        let error = SystemError(
            connection.writeCall, EPIPE, detail: "the peer has ended the stream, and the filter needs input to write")
        for promise in takeDeferredPromises() { promise.reject(error) }
    }

    // MARK: The end

    /// - Returns: false if the end record must wait for deferred writes. `sendDueEnd` then ends this side.
    func queueEnd() -> Bool {
        let connection = connection
        guard endRecord != .sent, isReady, connection.failure == nil else { return true }
        if isCalling || !deferred.isEmpty {
            endRecord = .due
            return false
        }
        endRecord = .sent
        call { try $0.end(&$1) }
        proceed()
        connection.updateInterest()
        return true
    }

    func sendDueEnd() {
        endRecord = .open
        if connection.lifecycle == .flushing {
            if !connection.writer.isQueued { ConnectionClose.lingerIfDelivered(connection) }
            return
        }
        guard queueEnd(), connection.lifecycle.isOpenOrFailed, connection.failure == nil else { return }
        connection.endWriter()
    }
}
