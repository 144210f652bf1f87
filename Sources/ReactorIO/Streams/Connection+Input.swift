import Promises
import Reactor

// The buffered input of a connection: received bytes that no read has consumed. Frames are decoded from it, a filter
// delivers into it, and the next read, of any form, gets the bytes that a read leaves. In `ColdState`, since a
// connection that reads whole chunks has no buffer.

extension Connection {
    /// The maximum number of bytes of a read, or of a call of the body of `forEachChunk`: the size of the loop's
    /// buffer.
    static var largestPiece: Int { 65_536 }

    /// The number of received bytes that no read has consumed.
    package var bufferedByteCount: Int { cold?.input.count ?? 0 }

    /// Takes the next `count` bytes, if they are buffered, and a read may begin; otherwise `nil`, and nothing is taken.
    package func takeArrived(_ count: Int) -> [UInt8]? {
        bufferedByteCount >= count && refuseRead() == nil ? takeInput(count) : nil
    }

    @usableFromInline @inline(__always)
    var hasInput: Bool { cold?.input.isEmpty == false }

    /// True when nothing follows the buffered bytes.
    @usableFromInline
    var hasLastInput: Bool { reader.hasEnded && reportedFailure == nil && hasInput }

    // Not counted, not even here: the connection keeps the state once it exists.
    @inline(__always)
    private var unownedCold: UnownedReference<ColdState>? {
        UnownedReference(self).borrow { $0.cold.map { UnownedReference($0) } }
    }

    func takeInput(_ count: Int) -> [UInt8] {
        unownedCold?.borrow { $0.input.take(min(count, $0.input.count)) } ?? []
    }

    /// Lends the unbuffered `received` bytes, or else the buffered ones, to `body`, and consumes as many as it returns.
    /// The rest is buffered.
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

    /// Lends the bytes, and the array that contains them, to `body`, which consumes bytes with `dropInput`. They stay
    /// valid during the call, whatever happens to the connection.
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

    /// Receives once, directly into the buffer.
    /// - Returns: as `receiveOnce`.
    func receiveInPlace(_ missing: Int, expecting expected: Int = 0) -> Int? {
        // A read of bytes takes them all at once.
        defer { if !reader.form.isOfBytes { noteHeldMemory() } }
        guard let limit = receiveLimit(.max) else { return nil }
        // Only the call: a pause or a report may run user code, which may not see the buffer change.
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
