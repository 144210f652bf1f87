import Glibc
import Reactor

/// The consumer of `forEachChunk`. The body and the connection are retained only while the loop may continue. Dropping
/// it, wherever that happens, allows other reads.
struct ChunkLoop: ~Copyable, InputConsumer {
    private let source: Connection
    private let body: CoreBody

    init(_ source: Connection, _ body: CoreBody) {
        (self.source, self.body) = (source, body)
        source.reader.form = .chunk
    }

    deinit { source.reader.form = .bytes }

    static var form: InputForm { .chunk }
    static var valueAtEnd: Void? { () }

    @inline(__always)
    var connection: Uncounted<Connection> { Uncounted(source) }

    @inline(__always)
    func take(_ received: UnsafeRawBufferPointer) throws -> InputStep<Void> {
        received.isEmpty ? try takeInput() : try hand(received.bytes)
    }

    @inline(never)
    private func takeInput() throws -> InputStep<Void> {
        guard source.hasInput && source.lifecycle.isOpen else { return .needs(1) }
        let bytes = source.takeInput(Connection.largestPiece)
        return try hand(bytes.span.bytes)
    }

    @inline(__always)
    private func hand(_ chunk: RawSpan) throws -> InputStep<Void> {
        let next = try body.function(chunk)
        guard next.settled?.isFulfilled == true else { return .wait(next) }
        // A filter may have delivered more than one chunk.
        return connection.borrow { $0.hasInput } ? .again : .needs(1)
    }

    @inline(__always)
    func mayContinue() throws -> Bool {
        if connection.borrow({ $0.lifecycle.isOpen && !$0.reader.hasEnded }) { return true }
        return try endsInOrder()
    }

    @inline(never)
    private func endsInOrder() throws -> Bool {
        if !source.lifecycle.isOpen {
            throw SystemError(source.readCall, ECANCELED, detail: "the connection was closed")
        }
        if let failure = source.reportedFailure { throw failure }
        return false
    }
}

extension Connection {
    @usableFromInline
    func startChunks(readsAhead: Bool, _ body: CoreBody) -> PromiseCore {
        if let refusal = refusalToRead { return PromiseCore(error: refusal) }
        if readsAhead { reader.readsAhead = true }
        let core = PromiseCore.pending(CoreCode { PromiseCore.perform(InputLoop<ChunkLoop>.self, $0, $1) })
        InputLoop(ChunkLoop(self, body)).begin(core)
        return core
    }
}
