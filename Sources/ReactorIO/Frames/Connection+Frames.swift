import Promises

extension Connection {
    /// Reads exactly `count` bytes.
    ///
    /// ```swift
    /// connection.read(exactly: 2).then { head in
    ///     connection.read(exactly: Int(head[0]) << 8 | Int(head[1]))
    /// }
    /// ```
    ///
    /// The next read, whatever its kind, gets later bytes, and the bytes of a cancelled or rejected read. Rejected with
    /// - `StreamError.endedEarly` if the peer ends its side first;
    /// - `StreamError.timedOut` at a limit in `frameTimeouts`;
    /// - the same `SystemError`s as `receive`, and `EINVAL` if `count` is below one.
    /// - Parameter count: the number of bytes; at least one.
    @inlinable @inline(__always)
    public func read(exactly count: Int, file: StaticString = #fileID, line: UInt = #line) -> Promise<[UInt8]> {
        Promise(readBytes(exactly: count).traced(root: "read(exactly:)", Promise<[UInt8]>.self, file, line))
    }

    /// Reads the bytes before the next `delimiter`, and drops the delimiter.
    ///
    /// ```swift
    /// connection.read(until: [0], limit: 64).done { name in print(name ?? []) }
    /// ```
    ///
    /// Rejected for the same reasons as `read(exactly:)`, and with
    /// - `StreamError.limitExceeded` if more than `limit` bytes precede the delimiter;
    /// - a `SystemError` with `EINVAL` if the delimiter is empty or `limit` is below one.
    /// - Parameters:
    ///   - delimiter: the bytes to look for; at least one.
    ///   - limit: the maximum number of bytes before the delimiter; at least one.
    /// - Returns: a promise of the bytes; `nil` if the peer ends its side before another byte.
    @inlinable @inline(__always)
    public func read(
        until delimiter: some Collection<UInt8>, limit: Int = 65536, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<[UInt8]?> {
        let delimiter = delimiter as? [UInt8] ?? Array(delimiter)
        let core = readBytes(until: delimiter, limit)
        return Promise(core.traced(root: "read(until:)", Promise<[UInt8]?>.self, file, line))
    }

    /// The overload for a string: `read(until: "\r\n\r\n", limit: 8192)`.
    @inlinable @inline(__always)
    public func read(
        until delimiter: String, limit: Int = 65536, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<[UInt8]?> { read(until: Array(delimiter.utf8), limit: limit, file: file, line: line) }

    /// Reads the next line.
    ///
    /// ```swift
    /// connection.readLine(limit: 1024).done { line in print(line ?? "the peer has ended") }
    /// ```
    ///
    /// Rejected for the same reasons as `read(until:)`, and with `StreamError.notUTF8`. A last line without a newline
    /// rejects it with `StreamError.endedEarly`. Then `receive()` returns that part, and
    /// `readFrame(LineDecoder(lastLine: .accept))` reads it as a line.
    /// - Parameter limit: the maximum number of bytes in the line.
    /// - Returns: a promise of the line without its `\n` or `\r\n`; `nil` if the peer ends its side before another
    ///   byte.
    @inlinable @inline(__always)
    public func readLine(limit: Int = 65536, file: StaticString = #fileID, line: UInt = #line) -> Promise<String?> {
        Promise(startLine(limit).traced(root: "readLine", Promise<String?>.self, file, line))
    }

    /// Reads the next frame that `decoder` finds.
    ///
    /// ```swift
    /// connection.readFrame(LengthPrefixDecoder<UInt32>(limit: 1 << 20)).done { payload in handle(payload) }
    /// ```
    ///
    /// Rejected for the same reasons as `read(exactly:)`, and with the decoder's error.
    /// - Parameter decoder: finds the frame.
    /// - Returns: a promise of the frame; `nil` if the peer ends its side before another byte.
    @inlinable @inline(__always)
    public func readFrame<Decoder: FrameDecoder>(
        _ decoder: Decoder, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Decoder.Frame?> {
        Promise(startFrame(decoder).traced(root: "readFrame", Promise<Decoder.Frame?>.self, file, line))
    }

    /// Reads the next frame with `body`.
    ///
    /// ```swift
    /// connection.readFrame { reader in
    ///     let name = try String(utf8: reader.line(limit: 64))
    ///     return (name, [UInt8](try reader.bytes(prefixedBy: UInt32.self, limit: 1 << 20)))
    /// }
    /// ```
    ///
    /// The whole request is one read. `body` gets all buffered bytes. If it needs more, the reader throws
    /// `ByteError.incomplete`, nothing is consumed, and `body` is called again from the front when the missing bytes
    /// have arrived. So `body` must only read, and return copies instead of spans. Use the frame once the promise is
    /// fulfilled.
    ///
    /// Rejected for the same reasons as `readFrame` with a decoder, with `StreamError.limitExceeded` in place of
    /// `ByteError.limitExceeded`, and with any other error from `body`. For frames in very many parts, write a
    /// `FrameDecoder`, which remembers its progress.
    /// - Parameter body: reads a frame of at least one byte; called inside this call and later by this thread's loop.
    /// - Returns: a promise of `body`'s result; `nil` if the peer ends its side before another byte.
    @inlinable @inline(__always)
    public func readFrame<Frame>(
        _ body: @escaping (inout ByteReader) throws -> Frame, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Frame?> {
        readFrame(ReadingDecoder(body), file: file, line: line)
    }
}

@usableFromInline
struct ReadingDecoder<Frame>: FrameDecoder {
    @usableFromInline let body: (inout ByteReader) throws -> Frame

    @inlinable
    init(_ body: @escaping (inout ByteReader) throws -> Frame) { self.body = body }

    @inlinable
    func decode(_ bytes: RawSpan) throws -> DecodedFrame<Frame> { try .reading(bytes, body) }
}
