import Reactor

// The buffered input: bytes that were received and that no read has consumed. Frames are decoded from it, and a filter
// delivers into it; what a read leaves there is the next one's, of whatever form.

extension Connection {
    /// The largest number of bytes that a read, or the body of `forEachChunk`, is given at once: the size of the loop's
    /// buffer, into which they are read. Then other connections have their turn.
    static var largestPiece: Int { 65_536 }

    @inline(__always)
    var hasInput: Bool { cold?.input.isEmpty == false }

    /// How many bytes were received so far: behind the filter, if there is one.
    var deliveredByteCount: Int { layer?.deliveredCount ?? bytesReceived }

    /// Consumes at most `count` of the buffered bytes.
    func takeInput(_ count: Int) -> [UInt8] {
        // As for `consumeInput`.
        cold.map { Uncounted($0) }?.borrow { $0.input.take(min(count, $0.input.count)) } ?? []
    }

    /// Lends the buffered bytes to `body`, if there are any, and consumes as many of them as `body` returns.
    @usableFromInline
    func consumeInput(_ body: (UnsafeRawBufferPointer) throws -> Int) rethrows {
        // Not counted: the connection, which the caller holds, keeps the state that it has once made.
        try cold.map { Uncounted($0) }?.borrow { if !$0.input.isEmpty { try $0.input.consume(body) } }
    }

    /// Lends the buffered bytes to `body`, which consumes them by `dropInput`. They stay valid during the call, whatever
    /// becomes of the connection.
    @usableFromInline
    func lendInput<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        guard let cold else { return try body(UnsafeRawBufferPointer(start: nil, count: 0)) }
        return try cold.input.lend(body)
    }

    /// Drops the first `count` of the buffered bytes, or those that are left.
    @usableFromInline
    func dropInput(_ count: Int) {
        guard let cold else { return }
        cold.input.drop(min(count, cold.input.count))
    }

    /// Whether the next read begins at `address`, within bytes that `lendInput` has lent.
    @usableFromInline
    func inputBegins(at address: UnsafeRawPointer) -> Bool { cold?.input.begins(at: address) == true }

    /// Whether the peer has ended its side in order, so that nothing follows what is buffered.
    @usableFromInline
    var hasLastInput: Bool { reader.hasEnded && reportedFailure == nil && hasInput }

    /// Adds bytes that a filter has delivered.
    func appendInput(_ bytes: [UInt8]) {
        ensuredColdState.input.append(bytes)
        noteHeldMemory()
    }

    /// Adds bytes that were received, the first of `expected` ones.
    func appendInput(_ bytes: UnsafeRawBufferPointer, of expected: Int?) {
        let cold = ensuredColdState
        // At most 1 MiB in advance: what a peer announces takes memory only as it arrives.
        if let expected, cold.input.isEmpty { cold.input.reserve(min(expected, 1 << 20)) }
        cold.input.append(bytes)
        noteHeldMemory()
    }
}
