import Reactor

// Loops over the frames of a stream.

extension Connection {
    /// Calls `body` with each frame that `decoder` finds, and a reader of its bytes, until the peer ends. Each call waits
    /// for the promise of the previous one.
    ///
    /// ```swift
    /// connection.forEachFrame(LengthPrefixDecoder<UInt32>()) { request, _ in
    ///     connection.write(answer(to: request))
    /// }
    /// ```
    ///
    /// One job of the loop handles up to 64 frames that arrived together, and their answers leave together: see
    /// `write`. The decoder keeps its state between frames. `body` may read what follows its frame, in any form; the
    /// next frame begins after the bytes of those reads. It may end the loop with `StopReading`. A drain counts the
    /// connection as busy until the promise settles, and ends the loop after the last received frame, as the peer's end
    /// does.
    ///
    /// **Nothing need be copied.** A decoder may return only what it has parsed, such as a type or the number of parts,
    /// and `body` reads the rest from the connection's buffer:
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
    /// connection.forEachFrame(RecordDecoder()) { type, record in
    ///     try record.skip(1)
    ///     let text = try record.bytes(prefixedBy: UInt16.self, limit: 1024)
    ///     return connection.write(text)
    /// }
    /// ```
    ///
    /// `decode` may be called several times per frame, `body` once. The reader and its spans are valid until `body`
    /// returns, and the compiler refuses code that keeps them longer: a closure that runs later needs a copy, such as
    /// `[UInt8](span)`. No memory is allocated for a frame.
    ///
    /// Rejected with
    /// - the first error that `body` throws, or that its promise is rejected with; `ByteError.endOfInput` says that it
    ///   has read beyond the frame;
    /// - the error that the decoder throws;
    /// - the errors of `readFrame`.
    ///
    /// Cancelling the result cancels the read, or the promise of `body` unless that has other waiters.
    /// - Parameters:
    ///   - decoder: finds the frames.
    ///   - body: called with each frame and a reader of all its bytes, by this thread's loop, never inside this call.
    /// - Returns: a promise that is fulfilled at the peer's end, at a drain, and after `StopReading`.
    @available(*, noasync, message: "no loop runs the handler in an async function")
    @inlinable
    public func forEachFrame<Decoder: FrameDecoder, Next: Thenable>(
        _ decoder: Decoder, _ body: @escaping (Decoder.Frame, inout ByteReader) throws -> Next,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> {
        let core = startFrames(decoder, body)
        return Promise(core.traced(root: "forEachFrame", Promise<Void>.self, file, line))
    }

    /// As `forEachFrame(decoder, body).recover(policy: .allErrors, recover)`, without the promise between them, which
    /// each connection of a server would keep for as long as it is open. `recover` may read, and begin another loop.
    /// - Returns: as the form above; after an error, a promise that settles as `recover` says.
    @inlinable
    package func forEachFrame<Decoder: FrameDecoder, Next: Thenable>(
        _ decoder: Decoder, _ body: @escaping (Decoder.Frame, inout ByteReader) throws -> Next,
        recover: @escaping (any Error) throws -> Promise<Void>, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> {
        let core = startFrames(decoder, recover: recover, body)
        return Promise(core.traced(root: "forEachFrame", Promise<Void>.self, file, line))
    }

    // A form of its own: `Void` cannot be a `Thenable`, and this one reads ahead.
    /// Calls `body` with each frame until the peer ends, without waiting between the calls; see the form with promises.
    /// - Parameters:
    ///   - decoder: finds the frames.
    ///   - body: called with each frame and a reader of all its bytes, by this thread's loop, never inside this call.
    /// - Returns: as the form with promises.
    @available(*, noasync, message: "no loop runs the handler in an async function")
    @inlinable
    public func forEachFrame<Decoder: FrameDecoder>(
        _ decoder: Decoder, _ body: @escaping (Decoder.Frame, inout ByteReader) throws -> Void,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> {
        let core = startFramesAhead(decoder, body)
        return Promise(core.traced(root: "forEachFrame", Promise<Void>.self, file, line))
    }

    /// Calls `body` with each line until the peer ends. Each call waits for the promise of the previous one.
    ///
    /// ```swift
    /// connection.forEachLine { line in connection.write("you said \(line)\n") }
    /// ```
    ///
    /// `body` may end the loop with `StopReading`. Rejected as `readLine`, and with the first error that `body` throws
    /// or that its promise is rejected with. Cancelling the result cancels the read, or the promise of `body` unless
    /// that has other waiters.
    /// - Parameters:
    ///   - limit: the maximum number of bytes of a line.
    ///   - body: called with each line, without its end, by this thread's loop, never inside this call.
    /// - Returns: a promise that is fulfilled at the peer's end, at a drain, and after `StopReading`.
    @available(*, noasync, message: "no loop runs the handler in an async function")
    public func forEachLine<Next: Thenable>(
        limit: Int = 65536, _ body: @escaping (String) throws -> Next, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> {
        let core =
            limit < 1
            ? refusedRead("limit: \(limit)") : startFrames(LineDecoder(limit: limit)) { line, _ in try body(line) }
        return Promise(core.traced(root: "forEachLine", Promise<Void>.self, file, line))
    }

    /// Calls `body` with each line until the peer ends, without waiting between the calls; see the form with promises.
    /// - Parameters:
    ///   - limit: the maximum number of bytes of a line.
    ///   - body: called with each line, without its end, by this thread's loop, never inside this call.
    /// - Returns: as the form with promises.
    @available(*, noasync, message: "no loop runs the handler in an async function")
    public func forEachLine(
        limit: Int = 65536, _ body: @escaping (String) throws -> Void, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> {
        let core =
            limit < 1
            ? refusedRead("limit: \(limit)") : startFramesAhead(LineDecoder(limit: limit)) { line, _ in try body(line) }
        return Promise(core.traced(root: "forEachLine", Promise<Void>.self, file, line))
    }
}
