import Glibc
import Reactor
import Synchronization

extension Connection {
    /// Calls `body` with each piece of input until the peer ends. The fastest way to read.
    ///
    /// ```swift
    /// connection.forEachChunk { connection.write($0) }
    /// ```
    ///
    /// A chunk is lent to `body`: it lies in a buffer of the loop, is at most 64 KiB, and is not copied. In the steady
    /// state a message costs no allocation. The promise that `body` returns is the backpressure: reading continues when
    /// it is fulfilled. If it is fulfilled already, as with most writes, it costs nothing. Each call of `body` is a job
    /// of this thread's loop, never inside this call. There is one call per turn, so that a flood of input leaves the
    /// other connections their turns.
    ///
    /// Cancelling the returned promise ends the reading: nothing more is read, and a promise that it waits for is
    /// cancelled if it has no other waiters. Until it has settled, other reads are refused with `EBUSY`. `body` ends
    /// the reading in order by `StopReading`.
    /// - Parameters:
    ///   - body: called with each chunk. The span is valid during the call only.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: a promise that is fulfilled at the peer's end, and rejected with
    ///   - the `SystemError` that `receive` would report;
    ///   - the error that `body` throws;
    ///   - the error of the promise that `body` has returned.
    @available(*, noasync, message: "no loop runs the handler in an async function")
    @inlinable
    public func forEachChunk<Done: Thenable>(
        _ body: @escaping (RawSpan) throws -> Done, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> where Done.T == Void {
        let core = startChunks(readsAhead: false) { try body($0).asPromise() }.core
        return Promise(core.traced(root: "forEachChunk", Promise<Void>.self, file, line))
    }

    /// Calls `body` with each piece of input until the peer ends, and reads on without waiting for anything else; see
    /// the form with promises.
    /// - Parameters:
    ///   - body: called with each chunk. The span is valid during the call only.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: as the form with promises.
    @available(*, noasync, message: "no loop runs the handler in an async function")
    @inlinable
    public func forEachChunk(
        _ body: @escaping (RawSpan) throws -> Void, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> {
        let core = startChunks(readsAhead: true) {
            try body($0)
            return .value
        }.core
        return Promise(core.traced(root: "forEachChunk", Promise<Void>.self, file, line))
    }

    @usableFromInline
    func startChunks(
        readsAhead: Bool, _ body: @escaping (RawSpan) throws -> Promise<Void>
    ) -> Promise<Void> {
        if let refusal = refusalToRead { return Promise(refused: refusal) }
        if readsAhead { reader.readsAhead = true }
        reader.beginChunks()
        let core = IOPromise(running: ChunkStep.self, self)
        // It begins with a job: `body` must not be called inside this call, even if bytes have arrived already.
        core.upstream.store(Upstream.taken, ordering: .relaxed)
        core.retain()
        core.wait(for: PromiseCore.void, andRun: ChunkStep(chunks: ChunkLoop(self, body)))
        return Promise(core)
    }

    /// Reads once for the promise that waits for a chunk.
    func readChunk() {
        // Lent to code that may turn the loop, or close the connection, which reads too.
        let buffer = loop.borrowScratch()
        defer { loop.giveBack(buffer) }
        let count = receive(into: buffer, atMost: buffer.count)
        if count == -Int(EAGAIN) { return noteFutileReadiness(readCall) }
        guard let (reference, _) = reader.takeReference() else { return }
        let step = reference._withUnsafeGuaranteedRef { takeStep($0) }
        guard count > 0 else {
            let core = reference.takeRetainedValue()
            noteEnd(count)
            step.finish(core)
            if count < 0 { failWrites() }
            return
        }
        noteReceived(count)
        step.hand(UnsafeRawBufferPointer(rebasing: buffer[..<count]), reference)
    }

    /// Takes the step out of a core that waits for input.
    func takeStep(_ core: PromiseCore) -> ChunkStep {
        core.upstream.store(Upstream.taken, ordering: .relaxed)
        return core.take(ChunkStep.self)
    }

    /// Makes `core`, which has the step, wait for input, and takes over the caller's reference. Its `upstream` has no
    /// source: the connection handles a cancellation.
    @inline(__always)
    fileprivate func demandChunk(_ core: Unmanaged<PromiseCore>) {
        core._withUnsafeGuaranteedRef { $0.upstream.store(0, ordering: .relaxed) }
        reader.wait(owned: core, for: .chunk)
        sendGathered()
        updateInterest()
    }
}

/// One `forEachChunk`. Retained by the step, which is in the core of the result: it is released with the promise that
/// the result waits for, and retains the connection only while that may continue.
final class ChunkLoop {
    fileprivate let connection: Connection
    fileprivate let body: (RawSpan) throws -> Promise<Void>
    private var hasEnded = false

    fileprivate init(_ connection: Connection, _ body: @escaping (RawSpan) throws -> Promise<Void>) {
        self.connection = connection
        self.body = body
    }

    /// Whether the connection has buffered bytes.
    @inline(__always)
    fileprivate var hasInput: Bool { Unmanaged.passUnretained(connection)._withUnsafeGuaranteedRef { $0.hasInput } }

    /// Allows other reads.
    func end() {
        if hasEnded { return }
        hasEnded = true
        connection.reader.finish()
    }

    // Cancelled while it waited for the promise of `body`.
    deinit { end() }
}

/// The operation of a `forEachChunk`'s result, which runs when the promise that the body has returned has settled.
/// While the result waits for input, the operation is stored in the core and does not run.
struct ChunkStep: Operation {
    typealias Input = Never
    typealias Output = Void
    let chunks: ChunkLoop

    func run(_ source: AnySource, _ core: PromiseCore) {
        guard source.isFulfilled else {
            chunks.end()
            return core.finishReading(rejectedAs: source.reference)
        }
        // The running reference.
        readNext(.passUnretained(core))
    }

    // These take the caller's reference to `core` over. It passes to the reader or to the next wait, or is released.

    /// Continues with the next chunk.
    private consuming func readNext(_ core: Unmanaged<PromiseCore>) {
        // Not retained: the step retains it. While the step is in the core, which a failure may release, the caller does: it
        // is a call of the connection, or `run`, which borrows the operation, so that `perform` keeps it until `run` returns.
        let connection = Unmanaged.passUnretained(chunks.connection)
        if !connection._withUnsafeGuaranteedRef({ $0.lifecycle.isOpen }) { return refuse(core) }
        if connection._withUnsafeGuaranteedRef({ $0.hasInput }) { return handInput(core) }
        if connection._withUnsafeGuaranteedRef({ $0.reader.hasEnded }) {
            finish(core.takeRetainedValue())
        } else {
            PromiseCore.store(self, in: core)
            connection._withUnsafeGuaranteedRef { $0.demandChunk(core) }
        }
    }

    @inline(never)
    private func handInput(_ core: Unmanaged<PromiseCore>) {
        chunks.connection.takeInput(65536).withUnsafeBytes { hand($0, core) }
    }

    @inline(never)
    private func refuse(_ core: Unmanaged<PromiseCore>) {
        let core = core.takeRetainedValue()
        chunks.end()
        core.reject(SystemError(chunks.connection.readCall, ECANCELED, detail: "the connection was closed"))
    }

    /// Calls the body.
    consuming func hand(_ bytes: UnsafeRawBufferPointer, _ core: Unmanaged<PromiseCore>) {
        let inner: PromiseCore
        do { inner = try chunks.body(bytes.bytes).core } catch {
            return finish(core.takeRetainedValue(), throwing: error)
        }
        // The body may have cancelled this core.
        guard core._withUnsafeGuaranteedRef({ $0.isOpen }) else {
            core.release()
            return inner.cancelIfUnobserved()
        }
        // If more input is here already, the next chunk is the next job's: otherwise the stack would grow with the
        // length of the input.
        if inner.settled?.kind == State.fulfilled && !chunks.hasInput { return readNext(core) }
        // Nothing but the step in its payload needs the core from here on.
        core.takeUnretainedValue().wait(for: inner, andRun: self)
    }

    /// The body has thrown `error`. A function of its own: within `hand` it cost each chunk two instructions.
    @inline(never)
    private func finish(_ core: PromiseCore, throwing error: any Error) {
        chunks.end()
        guard core.isOpen else { return }
        if error is StopReading { core.fulfill(()) } else { core.reject(error) }
    }

    /// The stream has ended.
    func finish(_ core: PromiseCore) {
        chunks.end()
        if let failure = chunks.connection.reportedFailure { core.reject(failure) } else { core.fulfill(()) }
    }
}
