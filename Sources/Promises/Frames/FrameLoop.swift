import Glibc
import Reactor

/// The operation of the result of `forEachFrame`. It runs when input has arrived, and when the body's promise has
/// settled.
@usableFromInline
struct FrameLoop<Decoder: FrameDecoder, Body: FrameBody>: Operation where Body.Frame == Decoder.Frame {
    @usableFromInline typealias Input = Never
    @usableFromInline typealias Output = Void
    @usableFromInline let context: Context

    /// State shared by all rounds.
    @usableFromInline
    final class Context: FrameLoopContext {
        @usableFromInline let reader: FrameReader
        @usableFromInline let body: Body
        // Unchecked: only one job at a time uses the decoder, and `decode` cannot reach it another way.
        @exclusivity(unchecked) @usableFromInline var decoder: Decoder

        @inlinable
        init(_ connection: Connection, _ decoder: Decoder, _ body: Body) {
            reader = FrameReader.of(connection)
            self.decoder = decoder
            self.body = body
            super.init(connection)
            reader.beginLoop()
        }

        // If it is answering, the result was cancelled while it waited for the promise of `body`.
        deinit {
            if isAnswering { endAnswer() }
            endLoop()
        }

        @usableFromInline
        func endLoop() {
            if hasEnded { return }
            hasEnded = true
            reader.endLoop()
        }
    }

    @inlinable
    init(_ connection: Connection, _ decoder: Decoder, _ body: Body) {
        context = Context(connection, decoder, body)
    }

    /// Begins a loop of `connection`.
    /// - Returns: the core of the result.
    @inlinable
    static func start(
        _ decoder: Decoder, of connection: Connection, readsAhead: Bool, _ body: Body
    ) -> PromiseCore {
        let frames = FrameLoop(connection, decoder, body)
        let core = FrameLoopCore(.of(Self.self))
        if readsAhead { frames.context.reader.beginReadingAhead() }
        core.retain()
        // Buffered frames are handled in a job, so that the body is never called inside this call.
        if FrameReader.mayWait(connection) {
            frames.waitForInput(missing: 1, core, isInEvent: false)
        } else {
            core.enqueueAgain(frames)
        }
        return core
    }

    /// The largest number of frames that a job handles or skips, so that a flood of small frames does not delay other
    /// connections.
    @inlinable static var framesInJob: Int { 64 }

    @inlinable
    func run(_ source: AnySource, _ core: PromiseCore) {
        if context.isAnswering { context.endAnswer() }
        guard source.isFulfilled else {
            return recover(from: source.error, core) ? () : core.finishReading(rejectedAs: source.reference)
        }
        let received = FrameReader.takeReceived(by: context.connection)
        do {
            let step = if let received { try handleFrames(received, core) } else { try handleFrames(core) }
            switch step {
            case .wait(let next):
                // The program may be slow. A decoder that holds nothing leaves the accounting to a read in its body.
                let held = context.decoder.heldBytes
                if held > 0 { FrameReader.noteHeld(held, by: context.connection) }
                core.wait(for: next, andRun: self)
            case .waitForInput(let missing): waitForInput(missing: missing, core, isInEvent: received != nil)
            case .again: core.enqueueAgain(self)
            case .end: core.finish(())
            }
        } catch { if !recover(from: error, core) { core.finishReading(throwing: error) } }
    }

    /// - Returns: whether the body has taken over: it has returned a promise, which `core` follows, or thrown.
    @inlinable @inline(__always)
    func recover(from error: any Error, _ core: PromiseCore) -> Bool {
        // The body may have cancelled the result before it threw: nothing follows then.
        if error is StopReading || !core.isOpen { return false }
        // The closure may begin another loop, whose messages are not parts of this one's.
        context.endLoop()
        do {
            guard let next = try context.body.recover(error) else { return false }
            core.finish(following: Promise<Void>(next))
        } catch { core.finish(throwing: error) }
        return true
    }

    /// Makes `core`, whose operation has run, run again when `missing` more bytes have arrived, or the stream has
    /// ended.
    @inlinable
    func waitForInput(missing: Int, _ core: PromiseCore, isInEvent: Bool) {
        // Cancelled while its operation ran.
        guard core.isOpen else { return core.release() }
        core.payload.store(self)
        context.reader.resume(core, whenArrived: missing, held: context.decoder.heldBytes, isInEvent: isInEvent)
    }

    /// Handles the frames of just received, unbuffered bytes: usually one, or the first of several. The other bytes are
    /// buffered before the body is called, which may read them.
    @inlinable
    func handleFrames(_ bytes: UnsafeRawBufferPointer, _ core: PromiseCore) throws -> FrameStep {
        let connection = context.connection
        if let refusal = context.reader.refusalToBeginFrame(of: connection, unbuffered: bytes.count) {
            connection.input.keep(bytes)
            throw refusal
        }
        var missing = 1
        switch try context.decoder.decode(received: bytes, in: connection) {
        case .frame(let frame, let consumed):
            let next = try handle(frame, UnsafeRawBufferPointer(rebasing: bytes[..<consumed]), nil, core)
            if let next { return .wait(next) }
            return try handleFrames(core)
        case .skipped(let consumed): if consumed > 0 { return try handleFrames(core) }
        case .incomplete(let count): missing = max(count, 1)
        }
        return try context.reader.mayContinue(context.decoder.expectation) ? .waitForInput(missing: missing) : .end
    }

    /// Handles buffered frames.
    @inlinable
    func handleFrames(_ core: PromiseCore) throws -> FrameStep {
        var left = Self.framesInJob
        while left > 0 {
            let step = try context.connection.input.lend { try handleFrames(in: $0, of: $1, core, &left) }
            if case .again = step { continue }
            return step
        }
        return .again
    }

    @usableFromInline
    enum FrameStep {
        case wait(PromiseCore)
        case waitForInput(missing: Int)
        /// The stream has ended.
        case end
        /// Check the input again: a job has reached its limit, or user code has changed the input.
        case again
    }

    /// Handles the buffered frames. Each is consumed before the body is called, which may read what follows.
    /// - Parameter owner: the array that contains the bytes.
    @inlinable
    func handleFrames(
        in bytes: UnsafeRawBufferPointer, of owner: UnsafePointer<[UInt8]>?, _ core: PromiseCore, _ left: inout Int
    ) throws -> FrameStep {
        let connection = context.connection
        var start = 0
        repeat {
            left -= 1
            if let refusal = context.reader.refusalToBeginFrame(of: connection) { throw refusal }
            let rest = UnsafeRawBufferPointer(rebasing: bytes[start...])
            var missing = 1
            if !rest.isEmpty {
                switch try context.decoder.decode(rest.bytes) {
                case .frame(let frame, let consumed):
                    if consumed < 1 || consumed > rest.count {
                        throw context.decoder.miscount("frame", consumed, of: rest.count)
                    }
                    connection.input.drop(consumed)
                    let bytes = UnsafeRawBufferPointer(rebasing: rest[..<consumed])
                    if let next = try handle(frame, bytes, owner, core) { return .wait(next) }
                    start += consumed
                    continue
                case .skipped(let consumed):
                    if consumed < 0 || consumed > rest.count {
                        throw context.decoder.miscount("skipped", consumed, of: rest.count)
                    }
                    FrameReader.noteSkipped(consumed, by: connection)
                    connection.input.drop(consumed)
                    start += consumed
                    // A decoder that skips nothing waits for more: it would be called forever.
                    if consumed > 0 { continue }
                case .incomplete(let count): missing = max(count, 1)
                }
                if connection.input.isLast {
                    // Otherwise the decoder has changed the input.
                    guard connection.input.begins(at: rest.baseAddress!) else { return .again }
                    if let frame = try context.decoder.decodeLast(rest.bytes) {
                        connection.input.drop(rest.count)
                        if let next = try handle(frame, rest, owner, core) { return .wait(next) }
                        return .again
                    }
                }
            }
            guard try context.reader.mayContinue(context.decoder.expectation) else { return .end }
            return .waitForInput(missing: missing)
        } while left > 0 && start < bytes.count && connection.input.begins(at: bytes.baseAddress! + start)
        return .again
    }

    /// Calls the body with a frame of the first `consumed` bytes.
    /// - Returns: the promise to wait for; `nil` if the next frame can follow at once.
    @inlinable @inline(__always)
    func handle(
        _ frame: Decoder.Frame, _ bytes: UnsafeRawBufferPointer, _ owner: UnsafePointer<[UInt8]>?, _ core: PromiseCore
    ) throws -> PromiseCore? {
        var reader = ByteReader(bytes.bytes, owner: owner)
        let next = try context.body.handle(frame, &reader)
        // If the body has cancelled this core, waiting for `next` will notice.
        if core.isOpen && next.settled?.isFulfilled == true { return nil }
        context.beginAnswer()
        return next
    }
}

extension FrameLoop where Decoder == LineDecoder {
    static func startLines(_ limit: Int, of connection: Connection, readsAhead: Bool, _ body: Body) -> PromiseCore {
        if limit < 1 {
            let error = SystemError(connection.readCall, EINVAL, detail: "limit: \(limit)")
            return PromiseCore(error: error)
        }
        return start(LineDecoder(limit: limit), of: connection, readsAhead: readsAhead, body)
    }
}

/// The body of a loop: the program's closure, without another one around it.
@usableFromInline
protocol FrameBody<Frame> {
    associatedtype Frame

    /// - Parameter bytes: the bytes that the frame was decoded from.
    /// - Returns: the promise that the next frame waits for.
    func handle(_ frame: Frame, _ bytes: inout ByteReader) throws -> PromiseCore

    /// - Returns: the promise that the result follows in place of `error`; `nil` if `error` rejects it.
    func recover(_ error: any Error) throws -> PromiseCore?
}

extension FrameBody {
    @inlinable @inline(__always)
    func recover(_ error: any Error) throws -> PromiseCore? { nil }
}

@usableFromInline
struct WaitingBody<Frame, Next: Thenable>: FrameBody {
    @usableFromInline let body: (Frame) throws -> Next

    @inlinable
    init(_ body: @escaping (Frame) throws -> Next) { self.body = body }

    @inlinable @inline(__always)
    func handle(_ frame: Frame, _ bytes: inout ByteReader) throws -> PromiseCore { try body(frame).asPromise().core }
}

/// `WaitingBody` with a closure for the error that ends the loop.
@usableFromInline
struct RecoveringBody<Frame, Next: Thenable>: FrameBody {
    @usableFromInline let body: (Frame) throws -> Next
    @usableFromInline let recovery: (any Error) throws -> Promise<Void>

    @inlinable
    init(_ body: @escaping (Frame) throws -> Next, _ recovery: @escaping (any Error) throws -> Promise<Void>) {
        (self.body, self.recovery) = (body, recovery)
    }

    @inlinable @inline(__always)
    func handle(_ frame: Frame, _ bytes: inout ByteReader) throws -> PromiseCore { try body(frame).asPromise().core }

    @inlinable @inline(__always)
    func recover(_ error: any Error) throws -> PromiseCore? { try recovery(error).core }
}

@usableFromInline
struct LendingBody<Frame, Next: Thenable>: FrameBody {
    @usableFromInline let body: (Frame, inout ByteReader) throws -> Next

    @inlinable
    init(_ body: @escaping (Frame, inout ByteReader) throws -> Next) { self.body = body }

    @inlinable @inline(__always)
    func handle(_ frame: Frame, _ bytes: inout ByteReader) throws -> PromiseCore {
        try body(frame, &bytes).asPromise().core
    }
}

/// For a loop that does not wait for the program.
@usableFromInline
struct PlainBody<Frame>: FrameBody {
    @usableFromInline let body: (Frame, inout ByteReader) throws -> Void

    @inlinable
    init(_ body: @escaping (Frame, inout ByteReader) throws -> Void) { self.body = body }

    @inlinable @inline(__always)
    func handle(_ frame: Frame, _ bytes: inout ByteReader) throws -> PromiseCore {
        try body(frame, &bytes)
        return PromiseCore.void
    }
}
