// Decoding a connection's buffered bytes.

extension FrameDecoder {
    /// Whether a decoder of this type calls user code. A constant where the type is known.
    @inlinable @inline(__always)
    static var isUsers: Bool { Self.self != LineDecoder.self && Self.self != DelimiterDecoder.self }

    /// Decodes the next frame of the buffered bytes; `nil` if it is incomplete.
    @inlinable @inline(__always)
    mutating func next(in connection: Connection, _ missing: inout Int) throws -> Frame? {
        repeat {
            missing = 1
            if let frame = try decode(in: connection, &missing) { return frame }
        } while missing == 0
        return nil
    }

    /// Decodes the buffered bytes once, if there are any, and drops what was consumed.
    /// - Returns: `nil` if there is no frame. Then `missing` is 0 if bytes were skipped and this must be called again.
    @inlinable @inline(__always)
    mutating func decode(in connection: Connection, _ missing: inout Int) throws -> Frame? {
        var frame: Frame?
        try connection.input.consume(callsUser: Self.isUsers) { bytes in
            switch try decode(bytes.bytes) {
            case .frame(let found, let consumed):
                if consumed < 1 || consumed > bytes.count { throw miscount("frame", consumed, of: bytes.count) }
                frame = .some(found)
                return consumed
            case .skipped(let consumed):
                if consumed < 0 || consumed > bytes.count { throw miscount("skipped", consumed, of: bytes.count) }
                // A decoder that skips nothing waits for more: it would be called forever.
                missing = consumed > 0 ? 0 : 1
                FrameReader.noteSkipped(consumed, by: connection)
                return consumed
            case .incomplete(let count):
                missing = max(count, 1)
                return 0
            }
        }
        // Moved out: a copy would be counted.
        return frame.take()
    }

    /// Decodes received bytes that are not buffered. Bytes after a frame, or of an incomplete one, are then buffered:
    /// the body that gets the frame may read them.
    @inlinable
    mutating func decode(
        received bytes: UnsafeRawBufferPointer, in connection: Connection
    ) throws -> DecodedFrame<Frame> {
        let decoded: DecodedFrame<Frame>
        do {
            decoded = try decode(bytes.bytes)
            switch decoded {
            case .frame(_, let consumed) where consumed < 1 || consumed > bytes.count:
                throw miscount("frame", consumed, of: bytes.count)
            case .skipped(let consumed) where consumed < 0 || consumed > bytes.count:
                throw miscount("skipped", consumed, of: bytes.count)
            default: break
            }
        } catch {
            connection.input.keep(bytes)
            throw error
        }
        switch decoded {
        case .frame(_, let consumed): connection.input.keep(UnsafeRawBufferPointer(rebasing: bytes[consumed...]))
        case .skipped(let consumed):
            connection.input.keep(bytes)
            FrameReader.noteSkipped(consumed, by: connection)
            connection.input.drop(consumed)
        case .incomplete: connection.input.keep(bytes)
        }
        return decoded
    }

    /// Like `next(in:)`, for received bytes that are not buffered, if any.
    @inlinable
    mutating func next(
        _ received: UnsafeRawBufferPointer?, in connection: Connection, _ missing: inout Int
    ) throws -> Frame? {
        guard let received else { return try next(in: connection, &missing) }
        missing = 1
        switch try decode(received: received, in: connection) {
        case .frame(let frame, _): return frame
        case .skipped(let consumed): return consumed > 0 ? try next(in: connection, &missing) : nil
        case .incomplete(let count): missing = max(count, 1)
        }
        return nil
    }

    /// Decodes the rest if the stream has ended, and drops it if that is a frame.
    @inlinable
    mutating func last(in connection: Connection) throws -> Frame? {
        guard connection.input.isLast else { return nil }
        var frame: Frame?
        try connection.input.consume(callsUser: Self.isUsers) { bytes in
            frame = try decodeLast(bytes.bytes)
            return frame == nil ? 0 : bytes.count
        }
        return frame
    }

    @usableFromInline @inline(never)
    func miscount(_ result: String, _ consumed: Int, of count: Int) -> PromiseError {
        .badInput("\(type(of: self)) has returned .\(result)(consumed: \(consumed)) for \(count) bytes")
    }
}
