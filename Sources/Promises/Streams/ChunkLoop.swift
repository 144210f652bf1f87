import Glibc
import Reactor
import Synchronization

/// The reading of a connection by `forEachChunk`.
@usableFromInline
enum ChunkLoop {
    @usableFromInline
    static func start(
        on connection: Connection, readsAhead: Bool, _ body: CoreBody
    ) -> Promise<Void> {
        if let refusal = connection.refusalToRead { return Promise(refused: refusal) }
        if readsAhead { connection.reader.readsAhead = true }
        connection.reader.beginChunks()
        let core = ChunkCore()
        // Begins with a job: `body` must not be called inside this call, even if bytes have arrived already.
        core.upstream.store(.taken)
        core.retain()
        core.enqueueAgain(ChunkStep(connection: connection, body: body))
        return Promise(core)
    }

    static func descriptorIsReadable(of connection: Connection) {
        // A filter that has left may have delivered bytes that a job will hand over, and which come first.
        if connection.hasInput, let (promise, _) = connection.reader.take() { return serve(promise, of: connection) }
        // Lent to code that may turn the loop, or close the connection, which reads too.
        let buffer = connection.loop.borrowScratch()
        defer { connection.loop.giveBack(buffer) }
        guard let count = connection.receiveOnce(into: buffer),
            let (reference, _) = connection.reader.takeReference()
        else { return }
        let step = reference.takeChunkStep()
        guard count > 0 else {
            let core = reference.takeOver()
            connection.noteEnd(count)
            step.finish(core)
            if count < 0 { connection.failWrites() }
            return
        }
        step.hand(UnsafeRawBufferPointer(rebasing: buffer[..<count]).bytes, reference, isInEvent: true)
    }

    /// Settles a promise that waited for a chunk with the buffered input, or with the end of the stream.
    static func serve(_ core: PromiseCore, of connection: Connection) {
        let step = core.ref.takeChunkStep()
        if connection.hasInput { step.handInput(.retaining(core)) } else { step.finish(core) }
    }
}

/// The promise of a `forEachChunk`. Its payload holds the step while it waits for input, and while it waits for the
/// body's promise.
// @unchecked: as PromiseCore.
private final class ChunkCore: PromiseCore, @unchecked Sendable {
    init() {
        super.init(
            state: .pending, loop: .ofThisThread, code: CoreCode { PromiseCore.perform(ChunkStep.self, $0, $1) })
    }

    /// It waits for input.
    override func cancelProducer() -> Bool { payload.pointer(to: ChunkStep.self).pointee.connection.stop(self) }
}

/// The next step of a `forEachChunk`: the operation of its promise, which runs when the body's promise has settled.
/// While the promise waits for input, the operation is stored in it and does not run.
///
/// The body and the connection are retained only while the loop may continue. Dropping the step, wherever that happens,
/// allows other reads.
struct ChunkStep: ~Copyable, Operation {
    typealias Input = Never
    typealias Output = Void
    fileprivate let connection: Connection
    fileprivate let body: CoreBody

    deinit { connection.reader.finish() }

    consuming func run(_ source: AnySource, _ core: PromiseCore) {
        guard source.isFulfilled else {
            end()
            return core.finishReading(rejectedAs: source.reference)
        }
        // A failed registration releases the step, and may be in a call of a connection that nothing else retains.
        let connection = connection
        // The running reference.
        readNext(core.ref, isInEvent: false)
        withExtendedLifetime(connection) {}
    }

    /// Whether the connection has buffered bytes.
    @inline(__always)
    private var hasInput: Bool { Uncounted(connection).borrow { $0.hasInput } }

    /// Drops the step before its promise is settled. That may run user code, which may cancel the promise.
    private consuming func end() {}

    // These take over the caller's reference to `core`. It passes to the reader or to the next wait, or is released.

    /// Continues with the next chunk.
    /// - Parameter isInEvent: whether the caller is `descriptorIsReadable`, after which the connection updates its
    ///   interest.
    @inline(__always)
    private consuming func readNext(_ core: CoreRef, isInEvent: Bool) {
        // Not retained: the step retains it. While the step is in the core, which a failure may release, the caller
        // does: it is a call of the connection, or `run`.
        let connection = Uncounted(connection)
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
    fileprivate consuming func handInput(_ core: CoreRef) {
        let bytes = connection.input.take(ConnectionInput.largestPiece)
        hand(bytes.span.bytes, core, isInEvent: false)
    }

    @inline(never)
    private consuming func refuse(_ core: CoreRef) {
        let core = core.takeOver()
        let error = SystemError(connection.readCall, ECANCELED, detail: "the connection was closed")
        end()
        if core.isOpen { core.reject(error) }
    }

    /// Calls the body.
    // Transparent, because it is part of a cycle of functions, where the optimiser does not always honour
    // `@inline(__always)`.
    @_transparent
    fileprivate consuming func hand(_ bytes: RawSpan, _ core: CoreRef, isInEvent: Bool) {
        let inner: PromiseCore
        do { inner = try body.function(bytes) } catch { return finish(core.takeOver(), throwing: error) }
        // The body may have cancelled this core.
        guard core.borrow({ $0.isOpen }) else {
            core.release()
            return inner.cancelIfUnobserved()
        }
        // If more input has already arrived, a job handles the next chunk: otherwise the stack would grow with the
        // input.
        if inner.settled?.isFulfilled == true && !hasInput { return readNext(core, isInEvent: isInEvent) }
        // From here on only the step in its payload needs the core.
        core.object.wait(for: inner, andRun: self)
    }

    /// The body has thrown `error`. A separate function: within `hand` it cost each chunk two instructions.
    @inline(never)
    private consuming func finish(_ core: PromiseCore, throwing error: any Error) {
        end()
        guard core.isOpen else { return }
        if error is StopReading { core.fulfill(()) } else { core.reject(error) }
    }

    /// The stream has ended.
    consuming func finish(_ core: PromiseCore) {
        let failure = connection.reportedFailure
        end()
        guard core.isOpen else { return }
        if let failure { core.reject(failure) } else { core.fulfill(()) }
    }
}

extension Uncounted where Object == PromiseCore {
    /// Takes the step out of a core that waits for input.
    func takeChunkStep() -> ChunkStep {
        borrow { $0.upstream.store(.taken) }
        return payload.take(ChunkStep.self)
    }
}
