import Glibc
import Reactor

// Writes for which no handler waits, so that the length of the queue is their only limit.

/// What becomes of bytes for a connection whose queue is full; see `broadcast`.
public enum WriteOverflow: Hashable, Sendable {
    /// The connection does not get these bytes. It gets later ones once its queue has sunk.
    case drop
    /// The connection is reset, and what waits for it is rejected with `ENOBUFS`; `closed` reports that, too.
    case abort
}

/// Writes `bytes` to each of `connections`, and waits for none of them.
///
/// ```swift
/// broadcast("\(name): \(line)\n".utf8, to: members.values, onOverflow: .abort)
/// ```
///
/// Each connection sends or queues the bytes as those of `write`, behind its earlier writes, but without a promise. A
/// connection whose `writeQueueLimit` is reached, since its peer does not read, is treated as `overflow` says. One that
/// takes no writes, because it has ended or failed, is passed over: its reads and `closed` report that.
/// - Parameters:
///   - bytes: the bytes.
///   - connections: connections of this thread's loop.
///   - overflow: what becomes of a connection whose queue is full.
/// - Returns: how many connections have sent or queued the bytes.
@discardableResult
public func broadcast(
    _ bytes: some Collection<UInt8>, to connections: some Sequence<Connection>, onOverflow overflow: WriteOverflow
) -> Int {
    let bytes = bytes as? [UInt8] ?? Array(bytes)
    return connections.reduce(0) { $0 + ($1.post(bytes, overflow) ? 1 : 0) }
}

extension Connection {
    /// Writes `bytes` without a promise.
    /// - Returns: whether they were sent or queued.
    func post(_ bytes: [UInt8], _ overflow: WriteOverflow) -> Bool {
        loop.assertOwner()
        guard canWrite || canWriteFiltered else { return false }
        if bytes.isEmpty { return true }
        if canWrite ? isFull : isFullFiltered {
            if overflow == .abort {
                abort(because: SystemError(writeCall, ENOBUFS, detail: "the peer does not read: \(fullQueue)"))
            }
            return false
        }
        guard canWrite else {
            let written = sendDiverted(bytes)
            written.catch(policy: .allErrors) { _ in }
            return !written.isRejected
        }
        let sent = writer.isQueued ? 0 : bytes.withUnsafeBytes { sendAtOnce($0) }
        if sent == bytes.count { return true }
        if sent < 0 { return false }
        let queue = writer.queue ?? WriteQueue()
        queue.append(bytes, from: sent, nil)
        noteQueued(queue)
        return true
    }

    /// As `abort`, and `error` says why: to what waits, and to `closed`. What the connection holds is released.
    func abort(because error: SystemError) {
        guard lifecycle.hasDescriptor else { return }
        cold?.attachment?.connectionDidFail(error)
        if failure == nil { noteFailure(error) }
        endRead(error)
        failWrites(losesOutput: true)
        release()
    }
}
