import Promises

/// The consumer of `forEachFrame`, with its state for all frames.
@usableFromInline
final class FrameLoop<Decoder: FrameDecoder, Next: Thenable>: InputConsumer {
    @usableFromInline typealias Body = (Decoder.Frame, inout ByteReader) throws -> Next
    @usableFromInline typealias Recovery = (any Error) throws -> Promise<Void>

    @usableFromInline let source: Connection
    @usableFromInline let body: Body
    @usableFromInline let recovery: Recovery?
    // Unchecked: only one call at a time uses the decoder, and `decode` cannot reach it by any other way.
    @exclusivity(unchecked) @usableFromInline var decoder: Decoder
    /// The promise of the read loop. Not retained: while pending, it retains this object.
    @usableFromInline let core: CoreRef
    /// True while the promise from `body` is pending, so that a drain counts the connection as busy even while `body`
    /// reads. Without a waiting read it counts as busy anyway.
    @exclusivity(unchecked) @usableFromInline var isAnswering = false
    @usableFromInline var hasEnded = false
    @usableFromInline var readsAhead = false
    /// True when the decoder has skipped bytes since the last frame, because these may belong to the next one.
    @exclusivity(unchecked) @usableFromInline var isInsideFrame = false
    /// The loop's number among the connection's read loops, assigned at its first step: see `DeferredAnswers`.
    @exclusivity(unchecked) @usableFromInline var number = Int32(-1)

    @inlinable
    init(_ source: Connection, _ decoder: Decoder, _ recovery: Recovery?, _ body: @escaping Body, _ core: CoreRef) {
        (self.source, self.decoder, self.core) = (source, decoder, core)
        (self.recovery, self.body) = (recovery, body)
        source.frameLoopDidBegin()
    }

    // Still answering if the result was cancelled while it waited for the promise from `body`.
    deinit {
        bodyDidSettle()
        end()
    }

    @inlinable
    func end() {
        if hasEnded { return }
        hasEnded = true
        source.frameLoopDidEnd(readsAhead)
    }

    // MARK: As a consumer

    @inlinable static var form: InputForm { .frames }
    @inlinable static var valueAtEnd: Void? { () }
    @inlinable var connection: UnownedReference<Connection> { UnownedReference(source) }
    @inlinable var heldBytes: Int { decoder.heldBytes }
    @inlinable var expectation: StreamError.Expectation { decoder.expectation }

    /// Notes that the promise from `body` may have settled.
    @inlinable
    func bodyDidSettle() {
        if !isAnswering { return }
        isAnswering = false
        source.endAnswer()
    }

    @inlinable
    func recover(from error: any Error, _ core: PromiseCore) -> Bool {
        bodyDidSettle()
        // `body` may have cancelled the result before it threw. Then nothing follows.
        guard let recovery, !(error is StopReading), error as? PromiseError != .cancelled, core.isOpen else {
            return false
        }
        // The closure may begin another read loop, whose messages are not part of this one's.
        end()
        do { try core.finish(following: recovery(error)) } catch { core.finish(throwing: error) }
        return true
    }

    /// The maximum number of frames handled or skipped in one job, so that small frames do not delay other connections.
    @inlinable static var framesInJob: Int { 64 }

    @inlinable
    func take(_ received: UnsafeRawBufferPointer) throws -> InputStep<Void> {
        bodyDidSettle()
        let isNew = number < 0
        if isNew { number = source.numberOfNextLoop() }
        var left = Self.framesInJob
        if source.isDraining {
            left = 1
            if let step = stepInDrain(received, isNew: isNew) { return step }
        }
        if !received.isEmpty, let step = try handleFrames(in: received, of: nil, isReceived: true, &left) {
            return step
        }
        while left > 0 {
            guard source.hasInput else {
                if let refusal = source.beginFrame() { throw refusal }
                return .needs(1)
            }
            if let step = try source.lendInput({ try handleFrames(in: $0, of: $1, isReceived: false, &left) }) {
                return step
            }
        }
        return .again
    }

    /// - Returns: `nil` if the read loop goes on to the next frame.
    @inlinable @inline(never)
    func stepInDrain(_ received: UnsafeRawBufferPointer, isNew: Bool) -> InputStep<Void>? {
        let owesNothing = isNew && readsAhead
        switch source.boundary(of: number, unbuffered: received.count, isInsideFrame: isInsideFrame, owesNothing) {
        case .goOn: return nil
        case .end:
            source.keepInput(received)
            return .done(())
        case .wait(let answers):
            source.keepInput(received)
            return .wait(answers)
        }
    }

    // MARK: Frames

    /// Handles the frames in `bytes`. Each is consumed before `body` is called, because `body` may read on.
    /// - Parameters:
    ///   - owner: the array that contains the bytes.
    ///   - isReceived: true if the bytes are not buffered. Those after the first frame are buffered before `body` is
    ///     called.
    /// - Returns: `nil` if the input must be read again, because the bytes are elsewhere or a limit is reached.
    @inlinable @inline(__always)
    func handleFrames(
        in bytes: UnsafeRawBufferPointer, of owner: UnsafePointer<[UInt8]>?, isReceived: Bool, _ left: inout Int
    ) throws -> InputStep<Void>? {
        let connection = source
        var start = 0
        repeat {
            left -= 1
            let rest = UnsafeRawBufferPointer(rebasing: bytes[start...])
            var missing = 1
            let decoded: DecodedFrame<Decoder.Frame>
            do {
                if let refusal = connection.beginFrame(unbuffered: isReceived ? rest.count : 0) {
                    throw refusal
                }
                decoded = try decoder.decode(rest, of: connection)
            } catch {
                if isReceived { connection.keepInput(rest) }
                throw error
            }
            // Moves the frame; a copy would cost a retain and a release.
            switch consume decoded {
            case .frame(let frame, let consumed):
                consume(consumed, of: rest, isReceived)
                let bytes = UnsafeRawBufferPointer(rebasing: rest[..<consumed])
                if let next = try handle(frame, bytes, owner) { return .wait(next) }
                start += consumed
                continue
            case .skipped(let consumed):
                consume(consumed, of: rest, isReceived)
                start += consumed
                // A decoder that skips nothing waits for more bytes, or it would be called for ever.
                if consumed > 0 {
                    isInsideFrame = true
                    continue
                }
            case .incomplete(let count):
                consume(0, of: rest, isReceived)
                missing = max(count, 1)
            }
            if connection.hasLastInput {
                // Otherwise the decoder has changed the input.
                guard connection.inputBegins(at: rest.baseAddress!) else { return nil }
                if let frame = try decoder.decodeLast(rest, of: connection) {
                    connection.dropInput(rest.count)
                    return try handle(frame, rest, owner).map { .wait($0) }
                }
            }
            return .needs(missing)
        } while left > 0 && start < bytes.count && connection.inputBegins(at: bytes.baseAddress! + start)
        return nil
    }

    @inlinable @inline(__always)
    func consume(_ count: Int, of bytes: UnsafeRawBufferPointer, _ isReceived: Bool) {
        if isReceived {
            source.keepInput(UnsafeRawBufferPointer(rebasing: bytes[count...]))
        } else if count > 0 {
            source.dropInput(count)
        }
    }

    /// - Returns: the promise to wait for; `nil` if the next frame can follow at once.
    @inlinable @inline(__always)
    func handle(
        _ frame: Decoder.Frame, _ bytes: UnsafeRawBufferPointer, _ owner: UnsafePointer<[UInt8]>?
    ) throws -> PromiseCore? {
        isInsideFrame = false
        var reader = ByteReader(bytes.bytes, owner: owner)
        let next = try body(frame, &reader).asPromise().core
        // If `body` has cancelled the result, the wait for `next` will notice.
        if next.settled?.isFulfilled == true && core.borrow({ $0.isOpen }) { return nil }
        isAnswering = true
        source.beginAnswer(holding: decoder.heldBytes)
        return next
    }
}

extension Connection {
    /// - Parameters:
    ///   - readsAhead: true if neither this loop nor later reads wait for the program.
    ///   - drainRule: the rule by which a drain ends the loop.
    @inlinable
    func startFrames<Decoder: FrameDecoder, Next: Thenable>(
        _ decoder: Decoder, readsAhead: Bool = false, drainRule: DrainRule = .afterFrame,
        recover: FrameLoop<Decoder, Next>.Recovery? = nil, _ body: @escaping FrameLoop<Decoder, Next>.Body
    ) -> PromiseCore {
        let core = PromiseCore.pending(
            .of(InputLoop<FrameLoop<Decoder, Next>>.self), role: .isDroppedWhenCancelled)
        let frames = FrameLoop(self, decoder, recover, body, core.ref)
        if readsAhead { frames.readsAhead = beginReadingAhead() }
        if drainRule != .afterFrame { setDrainRule(drainRule) }
        InputLoop(frames).begin(core)
        return core
    }

    @usableFromInline
    func frameLoopDidBegin() {
        loop.assertOwner("a loop over frames")
        reader.loops &+= 1
    }

    @usableFromInline
    func frameLoopDidEnd(_ readsAhead: Bool) {
        // Later reads for the request, or for another phase, wait for their answers themselves.
        if readsAhead { reader.readsAhead = false }
        cold?.memory?.inDecoder = 0
        reader.loops &-= 1
        if reader.loops > 0 { return }
        cold?.frameClock?.endMessages()
        reader.drainRule = .afterFrame
    }

    @usableFromInline
    func setDrainRule(_ rule: DrainRule) { reader.drainRule = rule }

    /// - Returns: true if this call made the connection read ahead.
    @usableFromInline
    func beginReadingAhead() -> Bool {
        if reader.readsAhead || refuseRead() != nil { return false }
        reader.readsAhead = true
        return true
    }

    /// - Parameter held: the decoder's memory. If it is zero, a read in `body` does the accounting.
    @usableFromInline
    func beginAnswer(holding held: Int) {
        pendingAnswers += 1
        if held > 0 { noteHeldMemory(inDecoder: held) }
    }

    @usableFromInline
    func endAnswer() { pendingAnswers -= 1 }
}
