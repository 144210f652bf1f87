import Glibc
import Reactor
import Synchronization

// Loops over the frames of a stream.

extension Connection {
    /// Calls `body` with each frame that `decoder` finds until the peer ends. Each call waits for the promise of the
    /// call before.
    ///
    /// ```swift
    /// connection.forEachFrame(LengthPrefixDecoder<UInt32>()) { request in
    ///     connection.write(answer(to: request))
    /// }
    /// ```
    ///
    /// One job of the loop handles up to 64 frames that have arrived together, and their answers leave together: see
    /// `write`. The decoder keeps its state between frames. `body` may read what follows its frame, in any form; the
    /// next frame begins after the bytes of those reads. It ends the loop by `StopReading`. While its promise is pending,
    /// a drain of the listener takes the connection for busy; behind the last frame that has arrived, the drain ends the
    /// loop as the peer's end does.
    ///
    /// Rejected with
    /// - the first error that `body` throws, or with which its promise is rejected;
    /// - the error that the decoder throws;
    /// - the errors of `readFrame`.
    ///
    /// Cancelling the result cancels the read, or the promise of `body` unless that has other waiters.
    /// - Parameters:
    ///   - decoder: finds the frames.
    ///   - body: called with each frame, in jobs of this thread's loop.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: a promise that is fulfilled at the peer's end, at a drain's, and after `StopReading`.
    @available(*, noasync, message: "no loop runs the handler in an async function")
    @inlinable
    public func forEachFrame<Decoder: FrameDecoder, Next: Thenable>(
        _ decoder: Decoder, _ body: @escaping (Decoder.Frame) throws -> Next, file: StaticString = #fileID,
        line: UInt = #line
    ) -> Promise<Void> {
        let core = startFrames(decoder, readsAhead: false) { try body($0).asPromise().core }
        return Promise(core.traced(root: "forEachFrame", Promise<Void>.self, file, line))
    }

    /// Calls `body` with each frame until the peer ends, without waiting between the calls; see the form with promises.
    /// - Parameters:
    ///   - decoder: finds the frames.
    ///   - body: called with each frame, in jobs of this thread's loop.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: as the form with promises.
    @available(*, noasync, message: "no loop runs the handler in an async function")
    @inlinable
    public func forEachFrame<Decoder: FrameDecoder>(
        _ decoder: Decoder, _ body: @escaping (Decoder.Frame) throws -> Void, file: StaticString = #fileID,
        line: UInt = #line
    ) -> Promise<Void> {
        let core = startFrames(decoder, readsAhead: true) {
            try body($0)
            return PromiseCore.void
        }
        return Promise(core.traced(root: "forEachFrame", Promise<Void>.self, file, line))
    }

    /// Calls `body` with each line until the peer ends. Each call waits for the promise of the call before.
    ///
    /// ```swift
    /// connection.forEachLine { line in connection.write("you said \(line)\n") }
    /// ```
    ///
    /// `body` ends the loop by `StopReading`. Rejected as `readLine`, with the first error that `body` throws, and with
    /// that of its first rejected promise. Cancelling the result cancels the read, or the promise of `body` unless that
    /// has other waiters.
    /// - Parameters:
    ///   - limit: the maximum number of bytes of a line.
    ///   - body: called with each line, without its end, in jobs of this thread's loop.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: a promise that is fulfilled at the peer's end, at a drain's, and after `StopReading`.
    @available(*, noasync, message: "no loop runs the handler in an async function")
    public func forEachLine<Next: Thenable>(
        limit: Int = 65536, _ body: @escaping (String) throws -> Next, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> {
        let core = startLines(limit, readsAhead: false) { try body($0).asPromise().core }
        return Promise(core.traced(root: "forEachLine", Promise<Void>.self, file, line))
    }

    /// Calls `body` with each line until the peer ends, without waiting between the calls; see the form with promises.
    /// - Parameters:
    ///   - limit: the maximum number of bytes of a line.
    ///   - body: called with each line, without its end, in jobs of this thread's loop.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: as the form with promises.
    @available(*, noasync, message: "no loop runs the handler in an async function")
    public func forEachLine(
        limit: Int = 65536, _ body: @escaping (String) throws -> Void, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> {
        let core = startLines(limit, readsAhead: true) {
            try body($0)
            return PromiseCore.void
        }
        return Promise(core.traced(root: "forEachLine", Promise<Void>.self, file, line))
    }

    private func startLines(
        _ limit: Int, readsAhead: Bool, _ body: @escaping (String) throws -> PromiseCore
    ) -> PromiseCore {
        if limit < 1 {
            return PromiseCore(error: SystemError(readCall, EINVAL, detail: "limit: \(limit)"), origin: nil)
        }
        return startFrames(LineDecoder(limit: limit), readsAhead: readsAhead, body)
    }

    @inlinable
    func startFrames<Decoder: FrameDecoder>(
        _ decoder: Decoder, readsAhead: Bool, _ body: @escaping (Decoder.Frame) throws -> PromiseCore
    ) -> PromiseCore {
        let frames = FrameLoop(self, decoder, body)
        let core = FrameLoop<Decoder>.makeWaitingCore()
        beginFrames(readsAhead: readsAhead)
        core.retain()
        // Buffered frames are handled in a job, so that the body is never called inside this call.
        let isReady = bufferedByteCount > 0 || refusalToRead != nil
        core.wait(for: isReady ? PromiseCore.void : waitForInput(missing: 1).core, andRun: frames)
        return core
    }

    @usableFromInline
    func beginFrames(readsAhead: Bool) {
        if readsAhead && refusalToRead == nil { reader.readsAhead = true }
    }
}

/// The operation of the result of `forEachFrame`. It runs when input has arrived, and when the promise that the body
/// has returned has settled.
@usableFromInline
struct FrameLoop<Decoder: FrameDecoder>: Operation {
    @usableFromInline typealias Input = Never
    @usableFromInline typealias Output = Void
    @usableFromInline let context: Context

    /// What all rounds share.
    @usableFromInline
    final class Context {
        @usableFromInline let connection: Connection
        @usableFromInline let body: (Decoder.Frame) throws -> PromiseCore
        // Unchecked: only one job at a time uses the decoder, and `decode` cannot reach it by another way.
        @exclusivity(unchecked) @usableFromInline var decoder: Decoder
        /// Whether the promise of the body is pending, and the connection therefore busy for a drain.
        @exclusivity(unchecked) @usableFromInline var isAnswering = false

        @inlinable
        init(_ connection: Connection, _ decoder: Decoder, _ body: @escaping (Decoder.Frame) throws -> PromiseCore) {
            self.connection = connection
            connection.beginFrameLoop()
            self.decoder = decoder
            self.body = body
        }

        @usableFromInline
        func beginAnswer() {
            isAnswering = true
            connection.pendingAnswers += 1
        }

        @usableFromInline
        func endAnswer() {
            isAnswering = false
            connection.pendingAnswers -= 1
        }

        // If it is answering, the result was cancelled while it waited for the promise of `body`.
        deinit {
            if isAnswering { endAnswer() }
            connection.endFrameLoop()
        }
    }

    @inlinable
    init(_ connection: Connection, _ decoder: Decoder, _ body: @escaping (Decoder.Frame) throws -> PromiseCore) {
        context = Context(connection, decoder, body)
    }

    /// The largest number of frames that a job handles or skips, so that a flood of small frames does not delay other
    /// connections.
    @inlinable static var framesInJob: Int { 64 }

    @inlinable
    func run(_ source: AnySource, _ core: PromiseCore) {
        if context.isAnswering { context.endAnswer() }
        guard source.isFulfilled else { return core.finishReading(rejectedAs: source.reference) }
        do {
            if let next = try handleFrames(core) {
                core.wait(for: next, andRun: self)
            } else {
                core.finish(())
            }
        } catch { core.finishReading(throwing: error) }
    }

    /// Handles buffered frames.
    /// - Returns: the promise to wait for; `nil` if the stream has ended.
    @inlinable
    func handleFrames(_ core: PromiseCore) throws -> PromiseCore? {
        let connection = context.connection
        var left = Self.framesInJob
        while left > 0 {
            left -= 1
            if let refusal = connection.refusalToBeginFrame { throw refusal }
            var missing = 1
            if let frame = try connection.decodeBuffered(&context.decoder, &missing) {
                let next = try context.body(frame)
                // If the body has cancelled this core, waiting for `next` finds that out.
                if !core.isOpen || next.settled?.kind != State.fulfilled {
                    context.beginAnswer()
                    return next
                }
            } else if missing > 0 {
                return try connection.moreInput(missing: missing, context.decoder.expectation)
            }
        }
        return PromiseCore.void
    }
}

extension Connection {
    /// Returns a promise of further input; `nil` if the stream has ended between two frames, or a drain ends it there.
    @usableFromInline
    func moreInput(missing: Int, _ expectation: @autoclosure () -> StreamError.Expectation) throws -> PromiseCore? {
        guard reader.hasEnded else {
            if let attachment = cold?.attachment, attachment.endsFrameLoop, !hasInput {
                attachment.endsFrameLoop = false
                return nil
            }
            return waitForInput(missing: missing).core
        }
        if let failure = reportedFailure { throw failure }
        let count = bufferedByteCount
        if count == 0 { return nil }
        throw StreamError.endedEarly(expected: expectation(), got: count)
    }
}
