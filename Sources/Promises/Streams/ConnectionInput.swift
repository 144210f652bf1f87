import Reactor

/// The buffered input of a connection: received bytes that no read has consumed. Frames are decoded from it, and a
/// filter delivers into it; bytes that a read leaves are for the next one, of any form.
///
/// The bytes are in `ColdState`: a connection that reads whole chunks has no buffer.
@usableFromInline
struct ConnectionInput {
    // Not counted: the caller holds the connection during each call.
    @usableFromInline let connection: Uncounted<Connection>

    @inlinable @inline(__always)
    init(of connection: Connection) { self.connection = Uncounted(connection) }

    /// The largest number of bytes that a read, or the body of `forEachChunk`, gets at once: the size of the loop's
    /// buffer, into which they are read. Then other connections take their turn.
    static var largestPiece: Int { 65_536 }

    /// Whether the peer has ended its side in order, so that nothing follows the buffered bytes.
    @usableFromInline
    var isLast: Bool { connection.borrow { $0.reader.hasEnded && $0.reportedFailure == nil && $0.hasInput } }

    // Not counted either: the connection keeps the state once it exists.
    @inline(__always)
    private var cold: Uncounted<ColdState>? { connection.borrow { $0.cold.map { Uncounted($0) } } }

    /// Consumes at most `count` bytes.
    func take(_ count: Int) -> [UInt8] { cold?.borrow { $0.input.take(min(count, $0.input.count)) } ?? [] }

    /// Lends `received` bytes that are not buffered to `body`, or the buffered ones if there are none, and consumes as
    /// many of them as `body` returns: the rest is, or stays, buffered.
    /// - Parameter callsUser: false if `body` calls no user code.
    @usableFromInline
    func consume(
        _ received: UnsafeRawBufferPointer, callsUser: Bool, _ body: (UnsafeRawBufferPointer) throws -> Int
    ) rethrows {
        if received.isEmpty {
            try cold?.borrow { if !$0.input.isEmpty { try $0.input.consume(callsUser: callsUser, body) } }
        } else {
            var consumed = 0
            defer { keep(UnsafeRawBufferPointer(rebasing: received[consumed...])) }
            consumed = try body(received)
        }
    }

    /// Lends the bytes, and the array that contains them, to `body`, which consumes bytes with `drop`. They stay valid
    /// during the call, whatever happens to the connection.
    @usableFromInline
    func lend<Result>(
        _ body: (UnsafeRawBufferPointer, UnsafePointer<[UInt8]>?) throws -> Result
    ) rethrows -> Result {
        guard let cold else { return try body(UnsafeRawBufferPointer(start: nil, count: 0), nil) }
        return try cold.borrow { try $0.input.lend(body) }
    }

    /// Drops the first `count` bytes, or those that are left.
    @usableFromInline
    func drop(_ count: Int) { cold?.borrow { $0.input.drop(min(count, $0.input.count)) } }

    /// Whether the next read begins at `address`, within lent bytes.
    @usableFromInline
    func begins(at address: UnsafeRawPointer) -> Bool { cold?.borrow { $0.input.begins(at: address) } == true }

    /// Adds bytes that a filter has delivered.
    func append(_ bytes: [UInt8]) { append { $0.append(bytes) } }

    /// Adds received bytes.
    func append(_ bytes: UnsafeRawBufferPointer) { append { $0.append(bytes) } }

    /// Adds bytes that the caller has received but not passed on, unless the connection was closed meanwhile.
    @usableFromInline
    func keep(_ bytes: UnsafeRawBufferPointer) {
        if !bytes.isEmpty, connection.borrow({ $0.lifecycle.isOpen }) { append(bytes) }
    }

    /// Receives once, directly into the buffer; see `InputBuffer.receive`.
    /// - Returns: as `Connection.receiveOnce`.
    func receive(_ missing: Int, expecting expected: Int = 0) -> Int? {
        connection.borrow { connection in
            let count = connection.ensuredColdState.input.receive(missing, expecting: expected) {
                connection.receiveOnce(into: $0)
            }
            connection.noteHeldMemory()
            return count
        }
    }

    @inline(__always)
    private func append(_ body: (inout InputBuffer) -> Void) {
        connection.borrow { connection in
            body(&connection.ensuredColdState.input)
            connection.noteHeldMemory()
        }
    }
}
