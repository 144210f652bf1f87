import Glibc
import Reactor
import Synchronization

/// One `forEachChunk`. Retained by the step, which is in the core of the result: it is released with the promise that
/// the result waits for, and retains the connection only while that may continue.
@usableFromInline
final class ChunkLoop {
    fileprivate let connection: Connection
    fileprivate let body: (RawSpan) throws -> Promise<Void>
    private var hasEnded = false

    fileprivate init(_ connection: Connection, _ body: @escaping (RawSpan) throws -> Promise<Void>) {
        self.connection = connection
        self.body = body
    }

    @usableFromInline
    static func start(
        on connection: Connection, readsAhead: Bool, _ body: @escaping (RawSpan) throws -> Promise<Void>
    ) -> Promise<Void> {
        if let refusal = connection.refusalToRead { return Promise(refused: refusal) }
        if readsAhead { connection.reader.readsAhead = true }
        connection.reader.beginChunks()
        let core = IOPromise(running: ChunkStep.self, connection)
        // It begins with a job: `body` must not be called inside this call, even if bytes have arrived already.
        core.upstream.store(.taken)
        core.retain()
        core.wait(for: PromiseCore.void, andRun: ChunkStep(chunks: ChunkLoop(connection, body)))
        return Promise(core)
    }

    static func descriptorIsReadable(of connection: Connection) {
        // A filter that has left may have delivered bytes that a job is to hand over, which come first.
        if connection.hasInput, let (promise, _) = connection.reader.take() { return serve(promise, of: connection) }
        // Lent to code that may turn the loop, or close the connection, which reads too.
        let buffer = connection.loop.borrowScratch()
        defer { connection.loop.giveBack(buffer) }
        guard let count = connection.receiveOnce(into: buffer),
            let (reference, _) = connection.reader.takeReference()
        else { return }
        let step = reference.borrow { $0.takeChunkStep() }
        guard count > 0 else {
            let core = reference.takeOver()
            connection.noteEnd(count)
            step.finish(core)
            if count < 0 { connection.failWrites() }
            return
        }
        step.hand(UnsafeRawBufferPointer(rebasing: buffer[..<count]), reference, isInEvent: true)
    }

    /// Settles the promise that has waited for a chunk with the buffered input, or with the end of the stream.
    static func serve(_ core: PromiseCore, of connection: Connection) {
        let step = core.takeChunkStep()
        if connection.hasInput { step.handInput(.retaining(core)) } else { step.finish(core) }
    }

    /// Whether the connection has buffered bytes.
    @inline(__always)
    fileprivate var hasInput: Bool { Uncounted(connection).borrow { $0.hasInput } }

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
        readNext(core.ref, isInEvent: false)
    }

    // These take the caller's reference to `core` over. It passes to the reader or to the next wait, or is released.

    /// Continues with the next chunk.
    /// - Parameter isInEvent: whether the caller is `descriptorIsReadable`, after which the connection updates its interest.
    @inline(__always)
    private consuming func readNext(_ core: CoreRef, isInEvent: Bool) {
        // Not retained: the step retains it. While the step is in the core, which a failure may release, the caller does: it
        // is a call of the connection, or `run`, which borrows the operation, so that `perform` keeps it until `run` returns.
        let connection = Uncounted(chunks.connection)
        if !connection.borrow({ $0.lifecycle.isOpen }) { return refuse(core) }
        if connection.borrow({ $0.hasInput }) { return handInput(core) }
        if connection.borrow({ $0.reader.hasEnded }) {
            finish(core.takeOver())
        } else {
            core.payload.store(self)
            // Without a source: the connection handles a cancellation.
            core.borrow { $0.upstream.store(.none) }
            connection.borrow { $0.requestInput(.chunk, for: core, updatesInterest: !isInEvent) }
        }
    }

    @inline(never)
    fileprivate func handInput(_ core: CoreRef) {
        chunks.connection.input.take(ConnectionInput.largestPiece).withUnsafeBytes { hand($0, core, isInEvent: false) }
    }

    @inline(never)
    private func refuse(_ core: CoreRef) {
        let core = core.takeOver()
        chunks.end()
        core.reject(SystemError(chunks.connection.readCall, ECANCELED, detail: "the connection was closed"))
    }

    /// Calls the body.
    @inline(__always)
    fileprivate consuming func hand(_ bytes: UnsafeRawBufferPointer, _ core: CoreRef, isInEvent: Bool) {
        let inner: PromiseCore
        // The step retains the object, and so the closure.
        do { inner = try Uncounted(chunks).borrow { try $0.body(bytes.bytes).core } } catch {
            return finish(core.takeOver(), throwing: error)
        }
        // The body may have cancelled this core.
        guard core.borrow({ $0.isOpen }) else {
            core.release()
            return inner.cancelIfUnobserved()
        }
        // If more input is here already, the next chunk is the next job's: otherwise the stack would grow with the
        // length of the input.
        if inner.settled?.isFulfilled == true && !chunks.hasInput {
            return readNext(core, isInEvent: isInEvent)
        }
        // Nothing but the step in its payload needs the core from here on.
        core.object.wait(for: inner, andRun: self)
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

extension PromiseCore {
    /// Takes the step out of a core that waits for input.
    func takeChunkStep() -> ChunkStep {
        upstream.store(.taken)
        return payload.take(ChunkStep.self)
    }
}
