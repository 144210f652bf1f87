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
    return connections.reduce(0) { $0 + (ByteWrite.post(bytes, to: $1, overflow) ? 1 : 0) }
}
