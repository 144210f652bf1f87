import Promises
import Reactor

extension Connection {
    /// Writes all of `bytes`.
    ///
    /// ```swift
    /// connection.write([0x01, 0x00]).then { connection.read(exactly: 2) }
    /// ```
    ///
    /// The promise is fulfilled when the kernel has taken the bytes, so a slow reader slows down a handler that waits
    /// for each write. Writes keep the order of the calls, and an empty write is fulfilled after earlier ones. The
    /// first write of a turn is sent at once. Later small writes of the turn are sent together.
    ///
    /// **Answers to pipelined requests are sent together.** While the connection has buffered bytes of the next
    /// request, a handler's write of at most 16 KiB is gathered, and its promise is fulfilled at once. One call sends
    /// the gathered bytes as soon as
    /// - a write finds no buffered bytes;
    /// - a read must wait for the peer;
    /// - 64 KiB are gathered;
    /// - the jobs of this turn have run.
    ///
    /// So the bytes of a fulfilled write may still fail to be sent. The error then rejects the next write, and reads
    /// report it after all arrived input. Bytes that the kernel does not take at once are queued before later writes.
    ///
    /// Rejected with a `SystemError`:
    /// - the error from send(2), or from write(2) on a descriptor that is not a socket, such as `ECONNRESET` or
    ///   `EPIPE`. The error rejects all pending writes. It names recv(2) if a read has met it first;
    /// - `ENOBUFS` beyond `writeQueueLimit`;
    /// - `EPIPE` after `shutdownWrite`;
    /// - `EBADF` after `close` or `abort`, and on a pipe's reader;
    /// - `ECANCELED` if `abort` is called while the write is pending.
    ///
    /// No signal is raised.
    ///
    /// A write that is cancelled while it is queued after others is never sent. Once the kernel has taken some of its
    /// bytes, `cancel()` has no effect: `abort` the connection.
    @inlinable @inline(__always)
    public func write<Bytes: Collection>(
        _ bytes: consuming Bytes, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> where Bytes.Element == UInt8 {
        let array = Bytes.self == [UInt8].self ? (consume bytes) as! [UInt8] : Array(bytes)
        return Promise(ByteWrite.start(array, on: self).core.traced(root: "write", Promise<Void>.self, file, line))
    }

    /// Writes all of `text` as UTF-8; see the overload for bytes.
    ///
    /// ```swift
    /// connection.write("hello\n").then { connection.readLine() }
    /// ```
    @inlinable @inline(__always)
    public func write(_ text: String, file: StaticString = #fileID, line: UInt = #line) -> Promise<Void> {
        write(Array(text.utf8), file: file, line: line)
    }

    /// Writes lent bytes, such as a chunk of `forEachChunk`, and copies only what the kernel does not take at once; see
    /// the overload for bytes.
    @inlinable @inline(__always)
    public func write(_ span: RawSpan, file: StaticString = #fileID, line: UInt = #line) -> Promise<Void> {
        let promise = span.withUnsafeBytes { ByteWrite.start($0, on: self) }
        return Promise(promise.core.traced(root: "write", Promise<Void>.self, file, line))
    }

    /// Writes `bytes` without a copy: the queue shares the memory of unsent ones. Fewer than 16 KiB are copied, and a
    /// filter gets a copy. See the overload for bytes.
    @inlinable @inline(__always)
    public func write(_ bytes: SharedBytes, file: StaticString = #fileID, line: UInt = #line) -> Promise<Void> {
        write({ $0.append(bytes) }, file: file, line: line)
    }

    /// Writes the bytes that `body` appends, without an array per write; see the overload for bytes.
    ///
    /// ```swift
    /// connection.write { output in
    ///     output.append("value ")
    ///     output.append(decimal: value)
    /// }
    /// ```
    ///
    /// If `body` itself writes to the connection, those bytes precede the appended ones.
    /// - Parameter body: appends the bytes; called once, inside this call. If it throws, nothing is written.
    /// - Throws: the error of `body`.
    @inlinable @inline(__always)
    public func write(
        _ body: (inout ByteWriter) throws -> Void, file: StaticString = #fileID, line: UInt = #line
    ) rethrows -> Promise<Void> {
        var output = ByteWriter(ByteWrite.takeSpare(of: self))
        do { try body(&output) } catch {
            ByteWrite.giveBack(&output, to: self)
            throw error
        }
        return Promise(ByteWrite.start(&output, on: self).core.traced(root: "write", Promise<Void>.self, file, line))
    }

    /// Writes several buffers as if they were one, without copying large arrays. One call (sendmsg(2), writev(2)) sends
    /// up to 1024 buffers. See the overload for bytes.
    @inlinable
    public func write<Buffers: Collection>(
        _ buffers: Buffers, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> where Buffers.Element: Collection, Buffers.Element.Element == UInt8 {
        write(
            { for buffer in buffers { $0.append(SharedBytes(buffer as? [UInt8] ?? Array(buffer))) } }, file: file,
            line: line)
    }
}

/// Writes all bytes from `source` to `sink`, until the source ends.
///
/// ```swift
/// pipe(from: client, to: server, endingSink: true)
/// ```
///
/// Nothing is read while a write is pending, so a slow reader of the sink slows the source down. Neither connection is
/// closed. With `endingSink` the sink is shut down for writing when the source has ended, so two pipes, one in each
/// direction, make a proxy.
///
/// Rejected with the error of the read or write that fails. A rejection or a cancellation loses bytes that were read
/// but not written.
/// - Parameters:
///   - source: the connection to read from.
///   - sink: the connection to write to.
///   - endingSink: true to shut down `sink` for writing at the end of `source`.
/// - Returns: a promise of the number of bytes, fulfilled when all are written.
@available(*, noasync, message: "on a loop write try await firstly { … }.value, else use a synchronous function")
public func pipe(
    from source: Connection, to sink: Connection, endingSink: Bool = false, file: StaticString = #fileID,
    line: UInt = #line
) -> Promise<Int> {
    // Another peer sends the answers, so an idle read does not mean an idle connection: see `isIdle`.
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
