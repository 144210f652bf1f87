import Glibc
import Reactor
import Synchronization

// Reading frame after frame.

extension Connection {
    /// Calls `body` with each frame that `decoder` finds, one after the other, each when the promise of the one before is
    /// fulfilled, until the peer ends.
    ///
    /// ```swift
    /// connection.forEachFrame(LengthPrefixDecoder<UInt32>()) { request in
    ///     connection.write(answer(to: request))
    /// }
    /// ```
    ///
    /// Frames that have arrived together are handled one behind the other in one job of the loop, 64 at the most, and the
    /// answers leave together: see `write`. The decoder keeps its state from frame to frame. In `body` other reads are
    /// possible, of what follows the frame; the next frame begins behind what they have read.
    ///
    /// Rejected with the first rejection, with what `body` or the decoder throws, and as `readFrame` is. Cancelling it cancels
    /// the read, or the promise that it waits for if nobody else does.
    @available(*, noasync, message: "no loop runs the handler in an async function")
    @inlinable
    public func forEachFrame<Decoder: FrameDecoder, Next: Thenable>(
        _ decoder: Decoder, _ body: @escaping (Decoder.Frame) throws -> Next, file: StaticString = #fileID,
        line: UInt = #line
    ) -> Promise<Void> {
        let core = startFrames(decoder, readsAhead: false) { try body($0).asPromise().core }
        return Promise(core.traced(root: "forEachFrame", Promise<Void>.self, file, line))
    }

    /// Calls `body` with each frame until the peer ends, and waits for nothing else; see the form with promises.
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

    /// Calls `body` with each line, one after the other, each when the promise of the one before is fulfilled, until
    /// the peer ends. The first rejection, or an error that `body` throws, ends it, and so do the errors of `readLine`.
    /// Cancelling it cancels the read, or the promise that it waits for if nobody else does.
    @available(*, noasync, message: "no loop runs the handler in an async function")
    public func forEachLine<Next: Thenable>(
        limit: Int = 65536, _ body: @escaping (String) throws -> Next, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> {
        let core = startLines(limit, readsAhead: false) { try body($0).asPromise().core }
        return Promise(core.traced(root: "forEachLine", Promise<Void>.self, file, line))
    }

    /// Calls `body` with each line until the peer ends; see the form with promises.
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
        let core = frames.makeCore()
        beginFrames(readsAhead: readsAhead)
        core.retain()
        // It begins with a job if frames are here: they are no reason to call the body inside this call.
        let isReady = bufferedByteCount > 0 || refusalToRead != nil
        core.wait(for: isReady ? PromiseCore.void : waitForInput(missing: 1).core, andRun: frames)
        return core
    }

    @usableFromInline
    func beginFrames(readsAhead: Bool) {
        if readsAhead && refusalToRead == nil { reader.readsAhead = true }
    }
}

/// One `forEachFrame`: the operation of its result, which runs when input has come, or when the promise that the body has
/// returned has settled.
@usableFromInline
struct FrameLoop<Decoder: FrameDecoder>: Operation {
    @usableFromInline typealias Input = Never
    @usableFromInline typealias Output = Void
    @usableFromInline let state: State

    @usableFromInline
    final class State {
        @usableFromInline let connection: Connection
        @usableFromInline let body: (Decoder.Frame) throws -> PromiseCore
        // Unchecked: used by one job at a time, and a decoder that comes back here while it decodes finds its own state.
        @exclusivity(unchecked) @usableFromInline var decoder: Decoder

        @inlinable
        init(_ connection: Connection, _ decoder: Decoder, _ body: @escaping (Decoder.Frame) throws -> PromiseCore) {
            self.connection = connection
            self.decoder = decoder
            self.body = body
        }
    }

    @inlinable
    init(_ connection: Connection, _ decoder: Decoder, _ body: @escaping (Decoder.Frame) throws -> PromiseCore) {
        state = State(connection, decoder, body)
    }

    @inlinable
    func makeCore() -> PromiseCore {
        let core = PromiseCore(state: Promises.State.pending, loop: EventLoop.addressOfThisThread) {
            PromiseCore.perform(Self.self, $0, $1)
        }
        core.upstream.store(Upstream.taken, ordering: .relaxed)
        return core
    }

    @inlinable
    func run(_ source: AnySource, _ core: PromiseCore) {
        guard source.isFulfilled else { return core.finish(rejectedAs: source.reference) }
        do {
            if let next = try handleFrames(core) {
                core.wait(for: next, andRun: self)
            } else {
                core.finish(())
            }
        } catch { core.finish(throwing: error) }
    }

    /// Handles the frames that are here.
    /// - Returns: the promise to wait for; `nil` if the stream has ended.
    @inlinable
    func handleFrames(_ core: PromiseCore) throws -> PromiseCore? {
        let connection = state.connection
        var missing = 1
        // So many frames a job, so that a flood of small ones leaves the other connections their turns.
        for left in (0..<64).reversed() {
            if let refusal = connection.refusalToRead { throw refusal }
            guard let frame = try connection.decodeBuffered(&state.decoder, &missing) else {
                return try connection.moreInput(missing: missing, state.decoder.expectation)
            }
            let next = try state.body(frame)
            // The body may have cancelled this core, which is then noticed by its wait.
            if left == 0 || !core.isOpen || next.settled?.kind != Promises.State.fulfilled { return next }
        }
        return nil
    }
}

extension Connection {
    /// A promise of further input; `nil` if the stream has ended between two frames.
    @usableFromInline
    func moreInput(missing: Int, _ expectation: @autoclosure () -> StreamError.Expectation) throws -> PromiseCore? {
        guard reader.hasEnded else { return waitForInput(missing: missing).core }
        if let failure { throw failure }
        let count = bufferedByteCount
        if count == 0 { return nil }
        throw StreamError.endedEarly(expected: expectation(), got: count)
    }
}
