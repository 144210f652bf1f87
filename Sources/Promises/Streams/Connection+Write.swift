import Reactor

// The forms of `write`; what becomes of the bytes is in Connection+Gather.swift, Connection+Flush.swift and WriteQueue.swift.

extension Connection {
    /// Writes all of `bytes`. Fulfilled when the kernel has taken them, which is the backpressure: wait for one write
    /// before the next, and a slow reader slows you down. Writes go out in the order of the calls; an empty one
    /// is fulfilled after those before it. The first of a turn is sent at once, small ones that follow leave together.
    ///
    /// **Answers to pipelined requests leave together.** In a handler, while bytes of the next request are here that no read
    /// has taken yet, a write of at most 16 KiB is gathered and fulfilled at once. What is gathered leaves with one call: with
    /// the first write that finds no such bytes, when a read has to wait for the peer, when 64 KiB are gathered, or when the
    /// jobs of this turn are done, whichever comes first. So a fulfilled write may still fail to leave: then the next write
    /// and the next read are rejected with that error. What the kernel does not take at once stays in the queue, before the
    /// writes that follow.
    ///
    /// Rejected with a `SystemError`: what the kernel reports, such as `ECONNRESET` or `EPIPE`, the same for every
    /// write that was waiting, and of `recv` where a read met it first; `ENOBUFS` beyond `writeQueueLimit`; `EPIPE`
    /// after `shutdownWrite`; `EBADF` after `close` or `abort`, and at a pipe's reader; `ECANCELED` if `abort` came
    /// while it waited. No signal is raised. See send(2), and write(2) for what is no socket.
    ///
    /// Cancelled while it waits behind others, it is never sent. One of which the kernel has bytes cannot be taken
    /// back, and `cancel()` does nothing: `abort` the connection.
    @inlinable @inline(__always)
    public func write<Bytes: Collection>(
        _ bytes: Bytes, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> where Bytes.Element == UInt8 {
        let array = bytes as? [UInt8] ?? Array(bytes)
        return Promise(send(array).core.traced(root: "write", Promise<Void>.self, file, line))
    }

    /// Writes `text` in UTF-8; see the form with bytes.
    @inlinable @inline(__always)
    public func write(_ text: String, file: StaticString = #fileID, line: UInt = #line) -> Promise<Void> {
        write(Array(text.utf8), file: file, line: line)
    }

    /// Writes bytes that are only lent, such as a chunk of `forEachChunk`; see the form with bytes. What the kernel
    /// does not take at once is copied.
    @inlinable @inline(__always)
    public func write(_ span: RawSpan, file: StaticString = #fileID, line: UInt = #line) -> Promise<Void> {
        let promise = span.withUnsafeBytes { send($0) }
        return Promise(promise.core.traced(root: "write", Promise<Void>.self, file, line))
    }

    /// Writes several buffers as if they were one; see the form with bytes. Large arrays are not copied: all leave with
    /// one call (sendmsg(2), writev(2)), or as few as 1024 buffers a call allow.
    @inlinable
    public func write<Buffers: Collection>(
        _ buffers: Buffers, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> where Buffers.Element: Collection, Buffers.Element.Element == UInt8 {
        let arrays = buffers.map { $0 as? [UInt8] ?? Array($0) }
        return Promise(send(arrays).core.traced(root: "write", Promise<Void>.self, file, line))
    }

    /// Writes the chunks of a sequence, each taken from it when the one before has been written: however long it is, no
    /// more than one chunk waits. Other writes may come between two chunks.
    ///
    /// Rejected as the first write that is. Cancelling it takes no more chunks, and takes the one at hand back if the
    /// kernel has none of it.
    @available(*, noasync, message: "no loop runs the handler in an async function")
    public func writeAll<Chunks: Sequence>(
        _ chunks: Chunks, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> where Chunks.Element == [UInt8] {
        let series = SequentialOperation<Void>(each: chunks) { [self] chunk in send(chunk).core }
        return Promise(series.start(series.makeCore().traced(root: "writeAll", Promise<Void>.self, file, line)))
    }
}

/// Writes all that comes from `source` to `sink`, until the source ends. Gives the number of bytes.
///
/// ```swift
/// pipe(from: client, to: server, endingSink: true)
/// ```
///
/// Backpressure is the sink's: nothing is read while a write waits. Nothing is copied but what the sink's kernel does
/// not take at once. Neither connection is closed; with `endingSink` the sink is shut down for writing when the source
/// has ended, so that two of these, one each way, make a proxy.
///
/// Rejected as reading or writing is; what was read and not written is lost then, as it is when this is cancelled.
@available(*, noasync, message: "no loop runs the handler in an async function")
public func pipe(
    from source: Connection, to sink: Connection, endingSink: Bool = false, file: StaticString = #fileID,
    line: UInt = #line
) -> Promise<Int> {
    // What goes through is not answered here, so nobody knows whether the peers are waiting.
    source.reader.readsAhead = true
    sink.reader.readsAhead = true
    var count = 0
    let all = source.forEachChunk(
        { chunk -> Promise<Void> in
            count += chunk.byteCount
            return sink.write(chunk)
        }, file: file, line: line)
    if !endingSink { return all.map("pipe", { count }, file, line) }
    return all.then({ sink.shutdownWrite() }, file: file, line: line).map("pipe", { count }, file, line)
}
