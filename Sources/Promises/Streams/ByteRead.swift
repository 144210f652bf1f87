import Glibc
import Reactor

/// A read of the next bytes, by `read` or `receive`.
@usableFromInline
enum ByteRead {
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
        // A plain core, which the loop can reuse. The reader keeps it until `take`; `ConnectionInterest` explains what
        // keeps the connection meanwhile.
        let core = PromiseCore.pending(ReadOutcome.self, by: connection)
        let demand = ConnectionReader.Demand.bytes(limit: UInt32(min(limit, ConnectionInput.largestPiece)))
        connection.requestInput(demand, for: .retaining(core))
        return Guarantee(core)
    }

    /// The result of a read without asking the kernel: buffered bytes, or the end.
    @inline(never)
    static func outcome(_ limit: Int, of connection: Connection) -> ReadOutcome {
        if connection.hasInput { return .bytes(connection.input.take(min(limit, ConnectionInput.largestPiece))) }
        return connection.failure.map(ReadOutcome.failed) ?? .end
    }

    @inline(never)
    static func descriptorIsReadable(of connection: Connection, _ limit: Int) {
        guard let (count, bytes) = receive(limit, from: connection),
            let (promise, _) = connection.reader.takeReference()
        else { return }
        let outcome: ReadOutcome
        if count > 0 {
            outcome = .bytes(bytes)
        } else {
            connection.noteEnd(count)
            outcome = Self.outcome(limit, of: connection)
        }
        PromiseCore.fulfill(owned: promise, outcome)
        if count < 0 { connection.failWrites() }
    }

    /// The size class of 4 KiB. For larger reads a copy costs more than an array of which a part may remain unused:
    /// with a copy, an echo of 16 KiB takes 1.17 of the CPU time of the same echo in C, and 1.11 without.
    private static var largestCopiedSizeClass: UInt8 { 12 }

    @inline(__always)
    private static func receive(_ limit: Int, from connection: Connection) -> (count: Int, bytes: [UInt8])? {
        if connection.reader.sizeClassOfLastRead > largestCopiedSizeClass {
            return receiveIntoArray(limit, from: connection)
        }
        let buffer = connection.loop.scratch
        guard let count = connection.receiveOnce(into: buffer, atMost: limit) else { return nil }
        if count <= 0 { return (count, []) }
        noteSize(count, of: connection)
        return (count, [UInt8](UnsafeRawBufferPointer(rebasing: buffer[..<count])))
    }

    /// Reads into an array whose size is the power of two above the last read. Bytes that do not fit are read in the
    /// next turn, with more room.
    @inline(never)
    private static func receiveIntoArray(_ limit: Int, from connection: Connection) -> (count: Int, bytes: [UInt8])? {
        let room = min(limit, 1 << connection.reader.sizeClassOfLastRead)
        var count: Int?
        let bytes = [UInt8](unsafeUninitializedCapacity: room) { buffer, filled in
            count = connection.receiveOnce(into: UnsafeMutableRawBufferPointer(buffer), atMost: room)
            filled = max(count ?? 0, 0)
        }
        guard let count else { return nil }
        if count > 0 { noteSize(count, of: connection) }
        return (count, bytes)
    }

    @inline(__always)
    private static func noteSize(_ count: Int, of connection: Connection) {
        connection.reader.sizeClassOfLastRead = UInt8(truncatingIfNeeded: Int.bitWidth - count.leadingZeroBitCount)
    }
}
