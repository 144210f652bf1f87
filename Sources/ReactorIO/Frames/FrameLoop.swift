import Promises

/// The consumer of `forEachFrame`, and the state of all its rounds.
@usableFromInline
final class FrameLoop<Decoder: FrameDecoder, Next: Thenable>: InputConsumer {
    @usableFromInline typealias Body = (Decoder.Frame, inout ByteReader) throws -> Next
    @usableFromInline typealias Recovery = (any Error) throws -> Promise<Void>

    @usableFromInline let source: Connection
    @usableFromInline let body: Body
    @usableFromInline let recovery: Recovery?
    // Unchecked: only one call at a time uses the decoder, and `decode` cannot reach it another way.
    @exclusivity(unchecked) @usableFromInline var decoder: Decoder
    /// The promise of the loop. UnownedReference: it has this object while it is pending.
    @usableFromInline let core: CoreRef
    /// True while the body's promise is pending, so that a drain counts the connection as busy while the body reads.
    /// Without a waiting read it is never idle.
    @exclusivity(unchecked) @usableFromInline var isAnswering = false
    @usableFromInline var hasEnded = false
    /// True when the connection reads ahead because of this loop.
    @usableFromInline var readsAhead = false
    /// True when the decoder has skipped bytes since the last frame, which may belong to the next one.
    @exclusivity(unchecked) @usableFromInline var isInsideFrame = false
    /// Its number among the connection's loops, from its first step on: see `DeferredAnswers`.
    @exclusivity(unchecked) @usableFromInline var number = Int32(-1)

    @inlinable
    init(_ source: Connection, _ decoder: Decoder, _ recovery: Recovery?, _ body: @escaping Body, _ core: CoreRef) {
        (self.source, self.decoder, self.core) = (source, decoder, core)
        (self.recovery, self.body) = (recovery, body)
        source.frameLoopDidBegin()
    }

    // If it is answering, the result was cancelled while it waited for the promise of `body`.
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

    /// Called when the body's promise may have settled.
    @inlinable
    func bodyDidSettle() {
        if !isAnswering { return }
        isAnswering = false
        source.endAnswer()
    }

    @inlinable
    func recover(from error: any Error, _ core: PromiseCore) -> Bool {
        bodyDidSettle()
        // The body may have cancelled the result before it threw. Nothing follows then.
        guard let recovery, !(error is StopReading), error as? PromiseError != .cancelled, core.isOpen else {
            return false
        }
        // The closure may begin another loop, whose messages are not part of this one's.
        end()
        do { try core.finish(following: recovery(error)) } catch { core.finish(throwing: error) }
        return true
    }

    /// The maximum number of frames that are handled or skipped at once, so that small frames do not delay other
    /// connections.
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

    /// - Returns: `nil` if the loop continues until the next frame.
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

    /// Handles the frames in `bytes`. Each is consumed before the body is called, which may read on.
    /// - Parameters:
    ///   - owner: the array that contains the bytes.
    ///   - isReceived: true if they are not buffered. Bytes after the first frame are buffered before the body is
    ///     called.
    /// - Returns: `nil` if the input must be read again: the bytes are elsewhere, or a limit is reached.
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
            // Moved, because a copy of the frame would be counted.
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
                // A decoder that skips nothing waits for more, or it would be called forever.
                if consumed > 0 {
                    isInsideFrame = true
                    continue
                }
            case .incomplete(let count):
                consume(0, of: rest, isReceived)
                missing = max(count, 1)
            }
            if connection.hasLastInput {
                // If not, the decoder has changed the input.
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
        // If the body has cancelled the result, waiting for `next` will notice.
        if next.settled?.isFulfilled == true && core.borrow({ $0.isOpen }) { return nil }
        isAnswering = true
        source.beginAnswer(holding: decoder.heldBytes)
        return next
    }
}

extension Connection {
    /// - Parameters:
    ///   - readsAhead: true if neither this loop nor later reads wait for the program.
    ///   - drainRule: the way that a drain ends it.
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
        // Later reads of the request, or of another phase, wait for its answers themselves.
        if readsAhead { reader.readsAhead = false }
        cold?.memory?.inDecoder = 0
        reader.loops &-= 1
        if reader.loops > 0 { return }
        cold?.frameClock?.endMessages()
        reader.drainRule = .afterFrame
    }

    @usableFromInline
    func setDrainRule(_ rule: DrainRule) { reader.drainRule = rule }

    /// - Returns: true if the connection reads ahead from now on.
    @usableFromInline
    func beginReadingAhead() -> Bool {
        if reader.readsAhead || refuseRead() != nil { return false }
        reader.readsAhead = true
        return true
    }

    /// - Parameter held: the memory of the decoder. If zero, a read in the body does the accounting.
    @usableFromInline
    func beginAnswer(holding held: Int) {
        pendingAnswers += 1
        if held > 0 { noteHeldMemory(inDecoder: held) }
    }

    @usableFromInline
    func endAnswer() { pendingAnswers -= 1 }
}
