import Glibc
import Reactor

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
        @usableFromInline let reader: FrameReader
        @usableFromInline let body: (Decoder.Frame) throws -> PromiseCore
        // Unchecked: only one job at a time uses the decoder, and `decode` cannot reach it by another way.
        @exclusivity(unchecked) @usableFromInline var decoder: Decoder
        /// Whether the promise of the body is pending, and the connection therefore busy for a drain.
        @exclusivity(unchecked) @usableFromInline var isAnswering = false

        @inlinable
        init(_ connection: Connection, _ decoder: Decoder, _ body: @escaping (Decoder.Frame) throws -> PromiseCore) {
            self.connection = connection
            reader = FrameReader.of(connection)
            self.decoder = decoder
            self.body = body
            reader.beginLoop()
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
            reader.endLoop()
        }
    }

    @inlinable
    init(_ connection: Connection, _ decoder: Decoder, _ body: @escaping (Decoder.Frame) throws -> PromiseCore) {
        context = Context(connection, decoder, body)
    }

    /// Begins a loop of `connection`.
    /// - Returns: the core of the result.
    @inlinable
    static func start(
        _ decoder: Decoder, of connection: Connection, readsAhead: Bool,
        _ body: @escaping (Decoder.Frame) throws -> PromiseCore
    ) -> PromiseCore {
        let frames = FrameLoop(connection, decoder, body)
        let core = makeWaitingCore()
        if readsAhead { frames.context.reader.beginReadingAhead() }
        core.retain()
        // Buffered frames are handled in a job, so that the body is never called inside this call.
        let isReady = connection.bufferedByteCount > 0 || connection.refusalToRead != nil
        let ready = isReady ? PromiseCore.void : frames.context.reader.waitForInput(missing: 1).core
        core.wait(for: ready, andRun: frames)
        return core
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
            if let refusal = context.reader.refusalToBeginFrame { throw refusal }
            var missing = 1
            var found = try context.decoder.decode(in: connection, &missing)
            if found == nil && missing > 0 { found = try context.decoder.last(in: connection) }
            if let frame = found {
                let next = try context.body(frame)
                // If the body has cancelled this core, waiting for `next` finds that out.
                if !core.isOpen || next.settled?.isFulfilled != true {
                    context.beginAnswer()
                    return next
                }
            } else if missing > 0 {
                return try context.reader.moreInput(missing: missing, context.decoder.expectation)
            }
        }
        return PromiseCore.void
    }
}

extension FrameLoop<LineDecoder> {
    static func startLines(
        _ limit: Int, of connection: Connection, readsAhead: Bool, _ body: @escaping (String) throws -> PromiseCore
    ) -> PromiseCore {
        if limit < 1 {
            let error = SystemError(connection.readCall, EINVAL, detail: "limit: \(limit)")
            return PromiseCore(error: error)
        }
        return start(LineDecoder(limit: limit), of: connection, readsAhead: readsAhead, body)
    }
}
