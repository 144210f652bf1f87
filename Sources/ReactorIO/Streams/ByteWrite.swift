import Promises
import Reactor
import ReactorLibc

@usableFromInline
enum ByteWrite {
    @usableFromInline
    static func start(_ bytes: [UInt8], on connection: Connection) -> Promise<Void> {
        bytes.withUnsafeBytes { start($0, of: bytes, on: connection) }
    }

    /// - Parameter array: the array that contains `bytes`, which the queue may keep instead of a copy.
    @usableFromInline @inline(__always)
    static func start(
        _ bytes: UnsafeRawBufferPointer, of array: [UInt8]? = nil, on connection: Connection
    ) -> Promise<Void> {
        connection.loop.assertOwner()
        guard connection.writesDirectly else { return filter(bytes, of: connection) }
        var sent = 0
        if !connection.writer.isQueued {
            if bytes.isEmpty { return .value }
            sent = sendAtOnce(bytes, on: connection)
            if sent == bytes.count { return .value }
            if sent < 0 { return Promise(refused: connection.failure!) }
        } else if connection.isFull {
            return Promise(refused: refusalAsFull(connection))
        }
        let core = PromiseCore.ofWrite(by: connection)
        connection.enqueue { $0.append(bytes, of: array, from: sent, core) }
        return Promise(core)
    }

    // MARK: In place

    /// Takes the event loop's spare array; an empty one inside another write.
    @usableFromInline
    static func takeSpare(of connection: Connection) -> [UInt8] {
        connection.loop.assertOwner()
        return connection.loop.takeSpareOutput()
    }

    /// Keeps the memory of `output` for the next write, unless unusually large.
    @usableFromInline
    static func giveBack(_ output: inout ByteWriter, to connection: Connection) {
        if output.written.capacity > 2 * WriteQueue.coalesceLimit { return }
        connection.loop.giveBack(spareOutput: &output.written)
    }

    @usableFromInline
    static func start(_ output: inout ByteWriter, on connection: Connection) -> Promise<Void> {
        if output.shared != nil {
            defer { giveBack(&output, to: connection) }
            return start(output.pieces, on: connection)
        }
        // The queue keeps such a large array without a copy.
        if output.written.count > WriteQueue.coalesceLimit { return start(output.written, on: connection) }
        let promise = output.written.withUnsafeBytes { start($0, on: connection) }
        giveBack(&output, to: connection)
        return promise
    }

    /// Sends the pieces as one write. The queue shares the memory of large unsent ones.
    @inline(never)
    private static func start(_ pieces: [SharedBytes], on connection: Connection) -> Promise<Void> {
        connection.sendGathered()
        guard connection.writesDirectly else { return pieces.joined.withUnsafeBytes { filter($0, of: connection) } }
        var sent = 0
        if !connection.writer.isQueued {
            sent = connection.transmit(pieces)
            if sent < 0 { return Promise(refused: connection.failure!) }
            if sent == pieces.reduce(0, { $0 + $1.count }) { return .value }
        } else if connection.isFull {
            return Promise(refused: refusalAsFull(connection))
        }
        let core = PromiseCore.ofWrite(by: connection)
        let budget = connection.cold?.memory?.budget
        connection.enqueue { $0.append(pieces, from: sent, core, budget) }
        return Promise(core)
    }

    // MARK: Without a promise

    @usableFromInline
    static func post(_ bytes: [UInt8], to connection: Connection, _ overflow: WriteOverflow) -> Bool {
        bytes.withUnsafeBytes { post($0, of: bytes, to: connection, overflow) }
    }

    @usableFromInline @inline(__always)
    static func post(
        _ bytes: UnsafeRawBufferPointer, of array: [UInt8]? = nil, to connection: Connection, _ overflow: WriteOverflow
    ) -> Bool {
        connection.loop.assertOwner()
        guard connection.writesDirectly, !connection.writer.isQueued, connection.loop.isBeingDriven, !bytes.isEmpty,
            connection.writer.canGather(bytes.count),
            connection.writer.queuedBytes + bytes.count <= connection.writeQueueLimit
        else { return postAtOnce(bytes, of: array, to: connection, overflow) }
        if connection.writer.gather(bytes) { FlushJob.enqueue(for: connection) }
        return true
    }

    @inline(never)
    private static func postAtOnce(
        _ bytes: UnsafeRawBufferPointer, of array: [UInt8]?, to connection: Connection, _ overflow: WriteOverflow
    ) -> Bool {
        connection.sendGathered()
        guard connection.takesWrites else { return false }
        if bytes.isEmpty { return true }
        if connection.isFull {
            if overflow == .abort { connection.abort(because: refusalAsFull(connection, "the peer does not read: ")) }
            return false
        }
        guard connection.writesDirectly else {
            let written = filter(bytes, of: connection)
            written.catch(policy: .allErrors) { _ in }
            return !written.isRejected
        }
        let sent = connection.writer.isQueued ? 0 : sendAtOnce(bytes, on: connection)
        if sent >= 0 && sent < bytes.count { connection.enqueue { $0.append(bytes, of: array, from: sent, nil) } }
        return sent >= 0
    }

    @inline(never)
    private static func filter(_ bytes: UnsafeRawBufferPointer, of connection: Connection) -> Promise<Void> {
        guard connection.lifecycle.isOpenOrFailed, let filter = connection.cold?.filter else {
            return Promise(refused: connection.refusalToWrite)
        }
        return filter.write(bytes)
    }

    // MARK: At once

    // These functions return the number of bytes that were gathered or taken by the kernel; zero if the bytes must be
    // queued; below zero if the connection has failed. Nothing may be queued before.
    //
    // While a connection has buffered input, its writes are fulfilled at once and gathered in a block. One call sends
    // the block: with the answer to the last buffered request, when a read must wait, when the block is full, or at the
    // end of the turn.

    @inline(__always)
    private static func sendAtOnce(_ bytes: UnsafeRawBufferPointer, on connection: Connection) -> Int {
        if connection.hasInput || connection.writer.isGathering { return gatherOrSend(bytes, on: connection) }
        return sendOrCork(bytes, on: connection)
    }

    @inline(__always)
    private static func sendOrCork(_ bytes: UnsafeRawBufferPointer, on connection: Connection) -> Int {
        let turn = connection.turn
        if connection.writer.corks(bytes.count, in: turn) {
            FlushJob.enqueue(for: connection)
            return 0
        }
        return connection.transmit(bytes, in: turn)
    }

    @inline(never)
    private static func gatherOrSend(_ bytes: UnsafeRawBufferPointer, on connection: Connection) -> Int {
        if !connection.writer.canGather(bytes.count) {
            connection.sendGathered()
            if connection.failure != nil { return -1 }
            if connection.writer.isQueued { return 0 }
        }
        // Another answer probably follows in this turn. Outside a turn no flush job would send the bytes.
        let expectsAnswers = connection.hasInput && !connection.reader.isWaiting && connection.loop.isBeingDriven
        if expectsAnswers && connection.writer.canGather(bytes.count) {
            if connection.writer.gather(bytes) { FlushJob.enqueue(for: connection) }
            return bytes.count
        }
        guard connection.writer.isGathering else { return sendOrCork(bytes, on: connection) }
        // The flush job of gathered bytes sends corked ones too.
        let corks = connection.writer.corks(bytes.count, in: connection.turn)
        if !corks { return sendGathered(with: bytes, on: connection) }
        let gathered = connection.writer.takeGathered()
        connection.enqueue { $0.append(gathered, nil) }
        return 0
    }

    /// - Parameter precedesFile: true if a file follows at once, which then fills the segment.
    @inline(never)
    static func sendGathered(
        with last: UnsafeRawBufferPointer, on connection: Connection, precedesFile: Bool = false
    ) -> Int {
        var block = connection.writer.takeGathered()
        let before = block.count
        block.append(contentsOf: last)
        let sent = block.withUnsafeBytes { bytes in
            if !precedesFile { return connection.transmit(bytes, in: connection.turn) }
            let result = connection.loop.kernel.sendMore(connection.fd, bytes.baseAddress!, bytes.count)
            return connection.didTransmit(result, in: connection.turn)
        }
        if sent < 0 { return -1 }
        if sent < before {
            block.removeLast(last.count)
            connection.enqueue { $0.append(block, from: sent, nil) }
            // `enqueue` registers the descriptor. If the kernel refuses, the connection has failed.
            if connection.failure != nil { return -1 }
        }
        return max(sent - before, 0)
    }

    // MARK: Refused

    static func refusalAsFull(_ connection: Connection, _ reason: String = "") -> SystemError {
        let writes = (connection.writer.queue?.writes ?? 0) + (connection.cold?.filter?.deferred.count ?? 0)
        let (bytes, weight) = (connection.queuedBytes, connection.queuedWeight)
        let held = "\(bytes) bytes in \(writes) writes are waiting, which take \(weight) bytes"
        let detail = "\(reason)\(held); the limit is \(connection.writeQueueLimit)"
        return SystemError(connection.writeCall, ENOBUFS, detail: detail)
    }
}
