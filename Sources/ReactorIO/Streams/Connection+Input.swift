import Promises
import Reactor

// The buffered input: received bytes that no read has consumed. Frames are decoded from it, a filter delivers into it,
// and the next read of any kind gets its bytes. In `ColdState`, because a connection that reads whole chunks has none.

extension Connection {
    /// The maximum number of bytes per read, or per chunk of `forEachChunk`: the size of the event loop's buffer.
    static var largestPiece: Int { 65_536 }

    package var bufferedByteCount: Int { cold?.input.count ?? 0 }

    /// Takes the next `count` bytes if they are buffered and a read may begin; otherwise returns `nil` and takes
    /// nothing.
    package func takeArrived(_ count: Int) -> [UInt8]? {
        bufferedByteCount >= count && refuseRead() == nil ? takeInput(count) : nil
    }

    @usableFromInline @inline(__always)
    var hasInput: Bool { cold?.input.isEmpty == false }

    /// True when there are buffered bytes, and nothing follows them.
    @usableFromInline
    var hasLastInput: Bool { reader.hasEnded && reportedFailure == nil && hasInput }

    // Not counted, not even to read it: the connection keeps the state once it exists.
    @inline(__always)
    private var unownedCold: UnownedReference<ColdState>? {
        UnownedReference(self).borrow { $0.cold.map { UnownedReference($0) } }
    }

    func takeInput(_ count: Int) -> [UInt8] {
        unownedCold?.borrow { $0.input.take(min(count, $0.input.count)) } ?? []
    }

    /// Lends `received`, or the buffered bytes if it is empty, to `body`. Consumes as many bytes as `body` returns, and
    /// buffers the rest.
    /// - Parameter callsUser: false if `body` calls no user code.
    @usableFromInline
    func consumeInput(
        _ received: UnsafeRawBufferPointer, callsUser: Bool, _ body: (UnsafeRawBufferPointer) throws -> Int
    ) rethrows {
        if received.isEmpty {
            try unownedCold?.borrow { if !$0.input.isEmpty { try $0.input.consume(callsUser: callsUser, body) } }
        } else {
            var consumed = 0
            defer { keepInput(UnsafeRawBufferPointer(rebasing: received[consumed...])) }
            consumed = try body(received)
        }
    }

    /// Lends the buffered bytes, and the array that contains them, to `body`, which consumes bytes with `dropInput`.
    /// The bytes stay valid during the call, whatever happens to the connection.
    @usableFromInline
    func lendInput<Result>(
        _ body: (UnsafeRawBufferPointer, UnsafePointer<[UInt8]>?) throws -> Result
    ) rethrows -> Result {
        guard let cold = unownedCold else { return try body(UnsafeRawBufferPointer(start: nil, count: 0), nil) }
        return try cold.borrow { try $0.input.lend(body) }
    }

    @usableFromInline
    func dropInput(_ count: Int) { unownedCold?.borrow { $0.input.drop(min(count, $0.input.count)) } }

    /// Returns true when the next read begins at `address`, within lent bytes.
    @usableFromInline
    func inputBegins(at address: UnsafeRawPointer) -> Bool {
        unownedCold?.borrow { $0.input.begins(at: address) } == true
    }

    func appendInput(_ bytes: [UInt8]) { changeInput { $0.append(bytes) } }

    func appendInput(_ bytes: UnsafeRawBufferPointer) { changeInput { $0.append(bytes) } }

    /// Adds received bytes, unless the connection has been closed.
    @usableFromInline
    func keepInput(_ bytes: UnsafeRawBufferPointer) {
        if !bytes.isEmpty, lifecycle.isOpenOrFailed { appendInput(bytes) }
    }

    /// - Returns: the same as `receiveOnce`.
    func receiveInPlace(_ missing: Int, expecting expected: Int = 0) -> Int? {
        // A read of bytes leaves nothing in the buffer.
        defer { if !reader.form.isOfBytes { noteHeldMemory() } }
        guard let limit = receiveLimit(.max) else { return nil }
        // Makes only the system call: a pause or a report may run user code, which must not see the buffer change.
        let count = ensuredColdState.input.receive(missing, expecting: expected) {
            callReceive(into: $0, atMost: limit)
        }
        return didReceiveTimed(count)
    }

    @inline(__always)
    private func changeInput(_ body: (inout InputBuffer) -> Void) {
        body(&ensuredColdState.input)
        noteHeldMemory()
    }
}
