import Glibc
import Reactor

/// The start of a write: the bytes are sent at once if possible, and are queued otherwise.
@usableFromInline
enum ByteWrite {
    @usableFromInline
    static func start(_ bytes: [UInt8], on connection: Connection) -> Promise<Void> {
        bytes.withUnsafeBytes { span in start(span, on: connection) { $0.append(bytes, from: $1, $2) } }
    }

    /// Sends lent bytes; copies those that the kernel does not take.
    @usableFromInline
    static func start(_ bytes: UnsafeRawBufferPointer, on connection: Connection) -> Promise<Void> {
        start(bytes, on: connection) { $0.append(UnsafeRawBufferPointer(rebasing: bytes[$1...]), $1 > 0, $2) }
    }

    /// - Parameter append: appends the bytes behind those that were sent to the queue.
    @inline(__always)
    private static func start(
        _ bytes: UnsafeRawBufferPointer, on connection: Connection,
        _ append: (WriteQueue, _ sent: Int, WritePromise) -> Void
    ) -> Promise<Void> {
        connection.loop.assertOwner()
        guard connection.canWrite else { return filter(bytes, of: connection) }
        var sent = 0
        if !connection.writer.isQueued {
            if bytes.isEmpty { return .value }
            sent = connection.sendAtOnce(bytes)
            if sent == bytes.count { return .value }
            if sent < 0 { return Promise(refused: connection.failure!) }
        } else if connection.isFull {
            return Promise(refused: refusalAsFull(connection))
        }
        let core = WritePromise(Void.self, connection)
        connection.enqueue { append($0, sent, core) }
        return Promise(core)
    }

    /// Sends several buffers as one write; small ones are joined.
    @usableFromInline
    static func start(_ buffers: [[UInt8]], on connection: Connection) -> Promise<Void> {
        let count = buffers.reduce(0) { $0 + $1.count }
        if count <= WriteQueue.coalesceLimit { return start(Array(buffers.joined()), on: connection) }
        connection.loop.assertOwner()
        connection.sendGathered()
        guard connection.canWrite else {
            return Array(buffers.joined()).withUnsafeBytes { filter($0, of: connection) }
        }
        let isFirst = !connection.writer.isQueued
        if !isFirst && connection.isFull { return Promise(refused: refusalAsFull(connection)) }
        let core = WritePromise(Void.self, connection)
        connection.writer.enqueue { $0.append(buffers, core) }
        if isFirst {
            connection.writer.turnOfLastSend = connection.turn
            connection.flush()
        }
        if connection.writer.isQueued { connection.queueDidGrow() }
        return Promise(core)
    }

    /// Writes without a promise; see `broadcast`.
    /// - Returns: whether `bytes` were sent or queued.
    static func post(_ bytes: [UInt8], to connection: Connection, _ overflow: WriteOverflow) -> Bool {
        connection.loop.assertOwner()
        guard connection.takesWrites else { return false }
        if bytes.isEmpty { return true }
        if connection.isFull {
            if overflow == .abort { connection.abort(because: refusalAsFull(connection, "the peer does not read: ")) }
            return false
        }
        guard connection.canWrite else {
            let written = bytes.withUnsafeBytes { filter($0, of: connection) }
            written.catch(policy: .allErrors) { _ in }
            return !written.isRejected
        }
        let sent = connection.writer.isQueued ? 0 : bytes.withUnsafeBytes { connection.sendAtOnce($0) }
        if sent >= 0 && sent < bytes.count { connection.enqueue { $0.append(bytes, from: sent, nil) } }
        return sent >= 0
    }

    /// A write that cannot go straight to the kernel: through the filter, or refused.
    @inline(never)
    private static func filter(_ bytes: UnsafeRawBufferPointer, of connection: Connection) -> Promise<Void> {
        guard connection.lifecycle.isOpen, let layer = connection.layer else {
            return Promise(refused: connection.refusalToWrite)
        }
        return layer.write(bytes)
    }

    /// The error for a write that finds the queue full.
    static func refusalAsFull(_ connection: Connection, _ reason: String = "") -> SystemError {
        let (queue, deferred) = (connection.writer.queue, connection.layer?.deferred)
        let bytes = (queue?.count ?? 0) + (deferred?.byteCount ?? 0)
        let writes = (queue?.writes ?? 0) + (deferred?.count ?? 0)
        let weight = (queue?.weight ?? 0) + (deferred?.weight ?? 0)
        let held = "\(bytes) bytes in \(writes) writes are waiting, which take \(weight) bytes"
        let detail = "\(reason)\(held); the limit is \(connection.writeQueueLimit)"
        return SystemError(connection.writeCall, ENOBUFS, detail: detail)
    }
}
