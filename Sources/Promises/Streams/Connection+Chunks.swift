import Glibc
import Reactor
import Synchronization

extension Connection {
    /// Calls `body` with all that comes, piece by piece, until the peer ends. The fastest way to read.
    ///
    /// ```swift
    /// connection.forEachChunk { connection.write($0) }
    /// ```
    ///
    /// A chunk is lent: it lies in a buffer of the loop, is at most 64 KiB, and copied by nobody; once it runs, a
    /// message costs no allocation. The promise that `body` returns is the backpressure: reading goes on when it is
    /// fulfilled, and if that has happened already, as it has with most writes, it costs nothing. Each call is a job of
    /// this thread's loop, never inside this one; there is one a turn, so that a flood leaves the other connections
    /// their turns.
    ///
    /// Fulfilled at the peer's end. Rejected with the `SystemError` that `receive` would report, with what `body`
    /// throws, or as the promise that it has returned. Cancelling it ends it: nothing more is read, and a promise that
    /// it waits for is cancelled if nobody else waits there. Until it has settled, other reads are refused with
    /// `EBUSY`.
    @available(*, noasync, message: "no loop runs the handler in an async function")
    @inlinable
    public func forEachChunk<Done: Thenable>(
        _ body: @escaping (RawSpan) throws -> Done, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> where Done.T == Void {
        let core = startChunks(readsAhead: false) { try body($0).asPromise() }.core
        return Promise(core.traced(root: "forEachChunk", Promise<Void>.self, file, line))
    }

    /// Calls `body` with all that comes, piece by piece, until the peer ends, and waits for nothing else; see the form
    /// with promises.
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
        if let refusal = refusalToRead { return Promise(error: refusal) }
        if readsAhead { reader.readsAhead = true }
        reader.beginChunks()
        let core = IOPromise(running: ChunkStep.self, self)
        // It begins with a job: bytes that are here already are no reason to call the body inside this call.
        core.upstream.store(Upstream.taken, ordering: .relaxed)
        core.retain()
        core.wait(for: PromiseCore.void, andRun: ChunkStep(chunks: ChunkLoop(self, body)))
        return Promise(core)
    }

    /// Reads once for it.
    func readChunk(_ core: PromiseCore) {
        // Lent to code that may turn the loop, or close the connection, which reads too.
        let buffer = loop.borrowScratch()
        defer { loop.giveBack(buffer) }
        let count = receive(into: buffer, atMost: buffer.count)
        if count == -Int(EAGAIN) { return noteFutileReadiness(readCall) }
        _ = reader.take()
        let step = takeStep(core)
        guard count > 0 else {
            noteEnd(count)
            step.finish(core)
            if count < 0 { failWrites() }
            return
        }
        noteReceived(count)
        step.hand(UnsafeRawBufferPointer(rebasing: buffer[..<count]), core)
    }

    /// Takes the step out of a core that waits for input.
    func takeStep(_ core: PromiseCore) -> ChunkStep {
        core.upstream.store(Upstream.taken, ordering: .relaxed)
        return core.take(ChunkStep.self)
    }

    /// Lets it wait for input. There is no word in the core about a source: to cancel it is the connection's business.
    fileprivate func demand(_ step: consuming ChunkStep, _ core: PromiseCore) {
        core.store(step)
        core.upstream.store(0, ordering: .relaxed)
        reader.wait(core, for: .chunk)
        sendGathered()
        updateInterest()
    }
}

/// Somebody who reads chunk by chunk. Held by the step, which is in the core of the result; so it goes with whatever
/// that waits for, and no one holds the connection for its sake but who is to go on.
final class ChunkLoop {
    fileprivate let connection: Connection
    fileprivate let body: (RawSpan) throws -> Promise<Void>
    private var hasEnded = false

    fileprivate init(_ connection: Connection, _ body: @escaping (RawSpan) throws -> Promise<Void>) {
        self.connection = connection
        self.body = body
    }

    /// Others may read from now on.
    func end() {
        if hasEnded { return }
        hasEnded = true
        connection.reader.finish()
    }

    // It was cancelled while it waited for the body's promise.
    deinit { end() }
}

/// What the result of `forEachChunk` does when the promise that the body has returned is settled. While it waits for
/// input it is in the core all the same, and does not run.
struct ChunkStep: Operation {
    typealias Input = Never
    typealias Output = Void
    let chunks: ChunkLoop

    func run(_ source: AnySource, _ core: PromiseCore) {
        guard source.isFulfilled else {
            chunks.end()
            return core.finish(rejectedAs: source.reference)
        }
        goOn(core)
        Unmanaged.passUnretained(core).release()
    }

    /// To the next chunk.
    private func goOn(_ core: PromiseCore) {
        let connection = chunks.connection
        if !connection.lifecycle.isOpen {
            chunks.end()
            return core.reject(SystemError(connection.readCall, ECANCELED, detail: "the connection was closed"))
        }
        if connection.hasInput {
            let bytes = connection.takeInput(65536)
            return bytes.withUnsafeBytes { hand($0, core) }
        }
        if connection.reader.hasEnded { finish(core) } else { connection.demand(self, core) }
    }

    /// Calls the body.
    func hand(_ bytes: UnsafeRawBufferPointer, _ core: PromiseCore) {
        let inner: PromiseCore
        do { inner = try chunks.body(bytes.bytes).core } catch {
            chunks.end()
            if core.isOpen { core.reject(error) }
            return
        }
        // It may have cancelled us.
        guard core.isOpen else { return inner.cancelIfUnobserved() }
        // With more at hand the next chunk is the next job's: else the stack would be as deep as that is long.
        if inner.settled?.kind == State.fulfilled && !chunks.connection.hasInput { return goOn(core) }
        core.retain()
        core.wait(for: inner, andRun: self)
    }

    /// The stream has come to its end.
    func finish(_ core: PromiseCore) {
        chunks.end()
        if let failure = chunks.connection.failure { core.reject(failure) } else { core.fulfill(()) }
    }
}
