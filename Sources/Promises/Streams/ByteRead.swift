import Glibc
import Reactor

/// A read of the next bytes, by `read` or `receive`.
@usableFromInline
enum ByteRead {
    /// The maximum number of bytes of a read.
    private static var largest: Int { 65536 }

    @usableFromInline
    static func start(_ limit: Int, from connection: Connection) -> Guarantee<ReadOutcome> {
        connection.loop.assertOwner()
        if let refusal = connection.refusalToRead { return .value(.failed(refusal)) }
        if limit < 1 {
            return .value(.failed(SystemError(connection.readCall, EINVAL, detail: "upTo: \(limit)")))
        }
        if connection.hasInput || connection.reader.hasEnded {
            return Guarantee(PromiseCore.fulfilled(outcome(limit, of: connection)))
        }
        let core = PromiseCore.pending { PromiseCore.perform(Follow<ReadOutcome>.self, $0, $1) }
        // A plain core, which the loop can use again. Until `take` the reader has it; the connection's `deinit` says why the
        // connection is there meanwhile.
        core.beginProduction(by: connection)
        connection.wait(core, for: .bytes(limit: UInt32(min(limit, largest))))
        return Guarantee(core)
    }

    /// What a read gets without the kernel: buffered bytes, or the end.
    @inline(never)
    static func outcome(_ limit: Int, of connection: Connection) -> ReadOutcome {
        if connection.hasInput { return .bytes(connection.takeInput(min(limit, largest))) }
        return connection.failure.map(ReadOutcome.failed) ?? .end
    }

    @inline(__always)
    static func descriptorIsReadable(of connection: Connection, _ limit: Int) {
        let (count, bytes) = connection.reader.receive(from: connection.descriptor, atMost: limit)
        if count == -Int(EAGAIN) { return connection.noteSpuriousReadiness(connection.readCall) }
        guard let (promise, _) = connection.reader.takeReference() else { return }
        let outcome: ReadOutcome
        if count > 0 {
            connection.noteReceived(count)
            outcome = .bytes(bytes)
        } else {
            connection.noteEnd(count)
            outcome = connection.failure.map(ReadOutcome.failed) ?? .end
        }
        PromiseCore.fulfill(owned: promise, outcome)
        if count < 0 { connection.failWrites() }
    }
}
