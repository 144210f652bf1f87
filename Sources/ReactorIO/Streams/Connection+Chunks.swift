import Promises
import Reactor
import ReactorLibc

extension Connection {
    /// Calls `body` with each chunk of input until the peer ends its side. The fastest way to read.
    ///
    /// ```swift
    /// connection.forEachChunk { connection.write($0) }
    /// ```
    ///
    /// A chunk is lent to `body` without a copy: at most 64 KiB in a buffer of the event loop. In the steady state a
    /// message costs no allocation. Backpressure: reading continues when the promise of `body` is fulfilled. The event
    /// loop of this thread calls `body`, never inside this call, and once per turn, so that a flood of input does not
    /// starve other connections. `body` may end the reading with `StopReading`.
    ///
    /// Cancelling the returned promise stops reading, and cancels the promise of `body` if it has no other waiters.
    /// Until the returned promise has settled, other reads are refused with `EBUSY`.
    /// - Parameter body: called with each chunk, valid during the call only.
    /// - Returns: a promise that is fulfilled when the peer ends its side. Rejected with the same `SystemError`s as
    ///   `receive`, or with the error of `body` or of its promise.
    @available(*, noasync, message: "no loop runs the handler in an async function")
    @inlinable
    public func forEachChunk<Value>(
        _ body: @escaping (RawSpan) throws -> Promise<Value>, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> {
        let core = startChunks(readsAhead: false, ChunkBody(body).erased)
        return Promise(core.traced(root: "forEachChunk", Promise<Void>.self, file, line))
    }

    /// Calls `body` with each chunk, without waiting between the calls. Separate, because `Void` cannot be a promise,
    /// and because this overload reads ahead.
    @available(*, noasync, message: "no loop runs the handler in an async function")
    @inlinable
    public func forEachChunk(
        _ body: @escaping (RawSpan) throws -> Void, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> {
        let body = ChunkBody<Never> { chunk in
            try body(chunk)
            return Promise(PromiseCore.void)
        }
        let core = startChunks(readsAhead: true, body)
        return Promise(core.traced(root: "forEachChunk", Promise<Void>.self, file, line))
    }

    @usableFromInline
    func startChunks(readsAhead: Bool, _ body: ChunkBody<Never>) -> PromiseCore {
        if let refusal = refuseRead() { return PromiseCore(error: refusal) }
        if readsAhead { reader.readsAhead = true }
        let core = PromiseCore.pending(
            CoreCode { PromiseCore.perform(InputLoop<ChunkLoop>.self, $0, $1) }, role: .isDroppedWhenCancelled)
        InputLoop(ChunkLoop(self, body)).begin(core)
        return core
    }
}

@usableFromInline
struct ChunkBody<Value> {
    @usableFromInline let function: (RawSpan) throws -> Promise<Value>

    @inlinable
    init(_ function: @escaping (RawSpan) throws -> Promise<Value>) { self.function = function }

    /// The same function, cast because a converting closure would allocate a block per connection.
    // Sound because a promise of any value stores only its core. A bare closure would first be wrapped in another one.
    @inlinable var erased: ChunkBody<Never> { unsafeBitCast(self, to: ChunkBody<Never>.self) }
}

/// The consumer of `forEachChunk`. Retains the body and the connection only while the loop may continue. Its release
/// allows other reads.
struct ChunkLoop: ~Copyable, InputConsumer {
    private let source: Connection
    private let body: ChunkBody<Never>

    init(_ source: Connection, _ body: ChunkBody<Never>) {
        (self.source, self.body) = (source, body)
        source.reader.form = .chunk
    }

    deinit { source.reader.form = .bytes }

    static var form: InputForm { .chunk }
    static var valueAtEnd: Void? { () }

    @inline(__always)
    var connection: UnownedReference<Connection> { UnownedReference(source) }

    @inline(__always)
    func take(_ received: UnsafeRawBufferPointer) throws -> InputStep<Void> {
        received.isEmpty ? try takeInput() : try hand(received.bytes)
    }

    @inline(never)
    private func takeInput() throws -> InputStep<Void> {
        guard source.hasInput && source.lifecycle.isOpenOrFailed else { return .needs(1) }
        let bytes = source.takeInput(Connection.largestPiece)
        return try hand(bytes.span.bytes)
    }

    @inline(__always)
    private func hand(_ chunk: RawSpan) throws -> InputStep<Void> {
        let next = try body.function(chunk).core
        guard next.settled?.isFulfilled == true else { return .wait(next) }
        // A filter may have delivered more than one chunk.
        return connection.borrow { $0.hasInput } ? .again : .needs(1)
    }

    // The usual case needs no call. A closed connection counts as cancelled.
    @inline(__always)
    func mayContinue() throws -> Bool {
        if connection.borrow({ $0.lifecycle.isOpenOrFailed && $0.reader.goesOn }) { return true }
        return try mayContinueSlow()
    }

    @inline(never)
    private func mayContinueSlow() throws -> Bool {
        if !source.lifecycle.isOpenOrFailed {
            throw SystemError(source.readCall, ECANCELED, detail: "the connection was closed")
        }
        if let failure = source.reportedFailure { throw failure }
        if source.reader.hasEnded { return false }
        // In a drain only the deadline ends a `pipe`: an earlier end would look complete.
        if source.reader.readsAhead { return true }
        throw LastCall()
    }

    func recover(from error: any Error, _ core: PromiseCore) -> Bool {
        guard error is LastCall, core.isOpen else { return false }
        core.finish(following: source.endOfChunks())
        return true
    }

    private struct LastCall: Error {}
}
