import Reactor

// Frames that are lent instead of copied.

extension Connection {
    /// Calls `body` with each frame that `decoder` finds, and lends it the bytes of the frame, until the peer ends.
    /// Each call waits for the promise of the previous one.
    ///
    /// ```swift
    /// /// Finds records: a type of one byte, and a text of at most 1,024 bytes behind its length.
    /// struct RecordDecoder: FrameDecoder {
    ///     func decode(_ bytes: RawSpan) throws -> DecodedFrame<UInt8> {
    ///         try .reading(bytes) { reader in
    ///             let type = try reader.byte()
    ///             _ = try reader.bytes(prefixedBy: UInt16.self, limit: 1024)
    ///             return type
    ///         }
    ///     }
    /// }
    ///
    /// connection.forEachFrame(lending: RecordDecoder()) { type, record in
    ///     try record.skip(1)
    ///     let text = try record.bytes(prefixedBy: UInt16.self, limit: 1024)
    ///     return connection.write(text)
    /// }
    /// ```
    ///
    /// `decode` may be called several times per frame; it returns the length and what it has parsed: a type, or the
    /// number of its parts. `body` is called once per frame, and reads the frame from the connection's buffer: the
    /// reader and its spans are valid until `body` returns, and the compiler refuses code that keeps them longer. A
    /// closure that runs later needs a copy, such as `[UInt8](span)`. Nothing else is copied, and no memory is
    /// allocated for a frame.
    ///
    /// Everything else, including errors, is as for the form with an owned frame.
    /// - Parameters:
    ///   - decoder: finds the frames.
    ///   - body: called with each frame and a reader of all its bytes, by this thread's loop. `ByteError.endOfInput`
    ///     says that it has read beyond the frame.
    /// - Returns: a promise that is fulfilled at the peer's end, at a drain, and after `StopReading`.
    @available(*, noasync, message: "no loop runs the handler in an async function")
    @inlinable
    public func forEachFrame<Decoder: FrameDecoder, Next: Thenable>(
        lending decoder: Decoder, _ body: @escaping (Decoder.Frame, inout ByteReader) throws -> Next,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> {
        let core = startFrames(decoder, body)
        return Promise(core.traced(root: "forEachFrame", Promise<Void>.self, file, line))
    }

    /// Calls `body` with each frame, and lends it the bytes of the frame, without waiting between the calls; see the
    /// form with promises.
    /// - Parameters:
    ///   - decoder: finds the frames.
    ///   - body: called with each frame and a reader of all its bytes, by this thread's loop, never inside this call.
    /// - Returns: as the form with promises.
    @available(*, noasync, message: "no loop runs the handler in an async function")
    @inlinable
    public func forEachFrame<Decoder: FrameDecoder>(
        lending decoder: Decoder, _ body: @escaping (Decoder.Frame, inout ByteReader) throws -> Void,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> {
        let core = startFramesAhead(decoder, body)
        return Promise(core.traced(root: "forEachFrame", Promise<Void>.self, file, line))
    }

    /// Reads the next frame with `body`; `nil` if the peer ends before another byte.
    ///
    /// ```swift
    /// connection.readFrame { reader in
    ///     let name = try String(utf8: reader.line(limit: 64))
    ///     return (name, [UInt8](try reader.bytes(prefixedBy: UInt32.self, limit: 1 << 20)))
    /// }
    /// ```
    ///
    /// In this form a whole request is one read, where its parts would be several: fewer promises, and no state between
    /// the parts. `body` gets all buffered bytes. If it needs more, the reader throws `ByteError.incomplete`, nothing
    /// is consumed, and `body` is called again from the front when the missing bytes have arrived. So `body` must only
    /// read; act on the frame after the promise. Spans do not leave `body`; it returns copies.
    ///
    /// Rejected as `readFrame` with a decoder, with `StreamError.limitExceeded` in place of `ByteError.limitExceeded`,
    /// and with any other error of `body`; the bytes are then kept. For frames that arrive in very many parts, write a
    /// `FrameDecoder`, which remembers its progress.
    /// - Parameter body: reads a frame, of at least one byte; called inside this call and by this thread's loop.
    /// - Returns: a promise of the result of `body`; `nil` if the peer ends before another byte.
    @inlinable @inline(__always)
    public func readFrame<Frame>(
        _ body: @escaping (inout ByteReader) throws -> Frame, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Frame?> {
        let core = startFrame(ReadingDecoder(body))
        return Promise(core.traced(root: "readFrame", Promise<Frame?>.self, file, line))
    }
}

/// Reads a frame with a closure.
@usableFromInline
struct ReadingDecoder<Frame>: FrameDecoder {
    @usableFromInline let body: (inout ByteReader) throws -> Frame

    @inlinable
    init(_ body: @escaping (inout ByteReader) throws -> Frame) { self.body = body }

    @inlinable
    func decode(_ bytes: RawSpan) throws -> DecodedFrame<Frame> { try .reading(bytes, body) }
}
