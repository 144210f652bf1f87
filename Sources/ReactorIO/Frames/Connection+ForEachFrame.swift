import Promises
import Reactor

extension Connection {
    /// Calls `body` with each frame that `decoder` finds, and a reader for the frame's bytes, until the peer ends its
    /// side. Each call waits for the previous call's promise.
    ///
    /// ```swift
    /// connection.forEachFrame(LengthPrefixDecoder<UInt32>()) { request, _ in
    ///     connection.write(answer(to: request))
    /// }
    /// ```
    ///
    /// One job of the loop handles up to 64 frames that arrived together, and their answers are sent together: see
    /// `write`. The decoder keeps its state between frames. `body` may read on after its frame with any read, and the
    /// next frame begins after those reads. `StopReading` ends the iteration. So does a drain, after the frames that
    /// had arrived when it began and their answers. `Connection.inputEnd` tells these ends from the peer's.
    ///
    /// **Nothing need be copied.** A decoder may return only what it has parsed, such as a type or the number of parts,
    /// and `body` reads the rest from the connection's buffer. `decode` may be called several times per frame, `body`
    /// once. The reader and its spans are valid until `body` returns, which the compiler enforces. A closure that runs
    /// later needs a copy, such as `[UInt8](span)`.
    ///
    /// Rejected with
    /// - the first error from `body` or its promise. `ByteError.endOfInput` means that `body` has read beyond the
    ///   frame;
    /// - the error that the decoder throws;
    /// - the errors of `readFrame`.
    ///
    /// Cancelling the result cancels the read, or `body`'s promise unless that has other waiters.
    /// - Parameters:
    ///   - decoder: finds the frames.
    ///   - body: called with each frame and a reader for all its bytes, by this thread's loop, never inside this call.
    /// - Returns: a promise fulfilled when the peer ends its side, at a drain, and after `StopReading`.
    @available(*, noasync, message: "no loop runs the handler in an async function")
    @inlinable
    public func forEachFrame<Decoder: FrameDecoder, Next: Thenable>(
        _ decoder: Decoder, _ body: @escaping (Decoder.Frame, inout ByteReader) throws -> Next,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> {
        let core = startFrames(decoder, body)
        return Promise(core.traced(root: "forEachFrame", Promise<Void>.self, file, line))
    }

    /// Works like `forEachFrame(decoder, body).recover(policy: .allErrors, recover)`, but saves the promise between
    /// them, which every connection would keep. `recover` may read, and begin another read loop.
    @inlinable
    package func forEachFrame<Decoder: FrameDecoder, Next: Thenable>(
        _ decoder: Decoder, drainRule: DrainRule = .afterFrame,
        _ body: @escaping (Decoder.Frame, inout ByteReader) throws -> Next,
        recover: ((any Error) throws -> Promise<Void>)?, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> {
        let core = startFrames(decoder, drainRule: drainRule, recover: recover, body)
        return Promise(core.traced(root: "forEachFrame", Promise<Void>.self, file, line))
    }

    /// The overload that does not wait between calls. Separate, because `Void` cannot be a `Thenable`, and because this
    /// one reads ahead.
    @available(*, noasync, message: "no loop runs the handler in an async function")
    @inlinable
    public func forEachFrame<Decoder: FrameDecoder>(
        _ decoder: Decoder, _ body: @escaping (Decoder.Frame, inout ByteReader) throws -> Void,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> {
        let core = startFrames(decoder, readsAhead: true) { frame, reader in
            try body(frame, &reader)
            return Promise<Void>.value
        }
        return Promise(core.traced(root: "forEachFrame", Promise<Void>.self, file, line))
    }

    /// Works like `forEachFrame` with lines, without their ends.
    ///
    /// ```swift
    /// connection.forEachLine { line in connection.write("you said \(line)\n") }
    /// ```
    ///
    /// Rejected for the same reasons as `readLine`, and with the first error from `body` or its promise.
    /// - Parameters:
    ///   - limit: the maximum number of bytes per line.
    ///   - body: called with each line, by this thread's loop, never inside this call.
    /// - Returns: a promise fulfilled when the peer ends its side, at a drain, and after `StopReading`.
    @available(*, noasync, message: "no loop runs the handler in an async function")
    public func forEachLine<Next: Thenable>(
        limit: Int = 65536, _ body: @escaping (String) throws -> Next, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> {
        Promise(startLines(limit, body).traced(root: "forEachLine", Promise<Void>.self, file, line))
    }

    /// The overload that does not wait between calls.
    @available(*, noasync, message: "no loop runs the handler in an async function")
    public func forEachLine(
        limit: Int = 65536, _ body: @escaping (String) throws -> Void, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> {
        let core = startLines(limit, readsAhead: true) { line in
            try body(line)
            return Promise<Void>.value
        }
        return Promise(core.traced(root: "forEachLine", Promise<Void>.self, file, line))
    }

    private func startLines<Next: Thenable>(
        _ limit: Int, readsAhead: Bool = false, _ body: @escaping (String) throws -> Next
    ) -> PromiseCore {
        if limit < 1 { return refusedRead("limit: \(limit)") }
        return startFrames(LineDecoder(limit: limit), readsAhead: readsAhead) { line, _ in try body(line) }
    }
}
