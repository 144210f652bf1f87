import Promises

/// A read of a single frame. Specialised in the decoder's module, so that reading a buffered frame looks up no type
/// metadata.
@usableFromInline
struct FrameRead<Decoder: FrameDecoder>: InputConsumer {
    @usableFromInline let connection: UnownedReference<Connection>
    @usableFromInline var decoder: Decoder

    @inlinable @inline(__always)
    init(_ connection: Connection, _ decoder: Decoder) {
        self.connection = UnownedReference(connection)
        self.decoder = decoder
    }

    @inlinable static var form: InputForm { .frame }
    @inlinable static var valueAtEnd: Decoder.Frame?? { .some(.none) }
    @inlinable var heldBytes: Int { decoder.heldBytes }
    @inlinable var expectation: StreamError.Expectation { decoder.expectation }

    @inlinable @inline(__always)
    mutating func take(_ received: UnsafeRawBufferPointer) throws -> InputStep<Decoder.Frame?> {
        try connection.borrow { connection in
            var missing = 1
            var frame = try decoder.next(received, in: connection, &missing)
            if case .none = frame { frame = try decoder.last(in: connection) }
            if case .some = frame { return .done(consume frame) }
            return .needs(missing)
        }
    }
}

extension Connection {
    @inlinable @inline(__always)
    func startFrame<Decoder: FrameDecoder>(_ decoder: Decoder) -> PromiseCore {
        if let refusal = refuseRead() { return PromiseCore(error: refusal) }
        return InputLoop.read(FrameRead(self, decoder))
    }

    @usableFromInline
    func readBytes(until delimiter: [UInt8], _ limit: Int) -> PromiseCore {
        if delimiter.isEmpty { return refusedRead("until: an empty delimiter") }
        if limit < 1 { return refusedRead("limit: \(limit)") }
        return startFrame(DelimiterDecoder(delimiter, limit: limit))
    }

    @usableFromInline
    func startLine(_ limit: Int) -> PromiseCore {
        limit < 1 ? refusedRead("limit: \(limit)") : startFrame(LineDecoder(limit: limit))
    }
}
