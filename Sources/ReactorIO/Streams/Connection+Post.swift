/// The treatment of bytes for a connection whose queue is full; see `Connection.post`.
public enum WriteOverflow: Hashable, Sendable {
    /// Drops these bytes. The connection takes later posts once its queue has drained.
    case drop
    /// Resets the connection, and rejects its pending operations with `ENOBUFS`, which `closed` also reports.
    case abort
}

extension Connection {
    /// Sends `bytes` without a promise, such as many small messages to subscribers.
    ///
    /// ```swift
    /// for subscriber in subscribers { subscriber.post(message, overflow: .drop) }
    /// ```
    ///
    /// The bytes are sent at the end of the turn, together with later posts and writes of the connection. Large posts,
    /// and all while the event loop is not being driven, are sent at once. Posts and writes keep the order of the
    /// calls. Queued posts count like writes for `writeQueueLimit` and `writable()`, but consecutive posts take only
    /// the memory of their bytes. Through a filter each post is a separate write.
    ///
    /// The result true does not mean that the bytes have arrived: reads, later writes and `closed` report a failure. A
    /// later `close` or `shutdownWrite` delivers the bytes first. An `abort` drops them.
    /// - Parameters:
    ///   - bytes: the bytes, such as `text.utf8`; may be empty.
    ///   - overflow: the reaction if the queue reaches `writeQueueLimit` because the peer does not read.
    /// - Returns: false if the bytes were dropped, because the queue is full, the connection has failed, this side has
    ///   been ended by `close`, `abort` or `shutdownWrite`, or a handshake has not finished.
    @inlinable @discardableResult
    public func post(_ bytes: some Collection<UInt8>, overflow: WriteOverflow) -> Bool {
        if let array = bytes as? [UInt8] { return ByteWrite.post(array, to: self, overflow) }
        return bytes.withContiguousStorageIfAvailable { ByteWrite.post(UnsafeRawBufferPointer($0), to: self, overflow) }
            ?? ByteWrite.post(Array(bytes), to: self, overflow)
    }
}

/// Posts `bytes` to each of `connections`.
///
/// ```swift
/// broadcast("\(name): \(line)\n".utf8, to: members.values, overflow: .abort)
/// ```
///
/// Skips connections that have ended or failed; their reads and `closed` report that.
/// - Parameters:
///   - bytes: the bytes. Queues share the memory of large ones.
///   - connections: connections of this thread's loop.
///   - overflow: the reaction to a full queue.
/// - Returns: the number of connections that took the bytes.
@discardableResult
public func broadcast(
    _ bytes: some Collection<UInt8>, to connections: some Sequence<Connection>, overflow: WriteOverflow
) -> Int {
    let bytes = bytes as? [UInt8] ?? Array(bytes)
    return connections.reduce(0) { $0 + (ByteWrite.post(bytes, to: $1, overflow) ? 1 : 0) }
}
