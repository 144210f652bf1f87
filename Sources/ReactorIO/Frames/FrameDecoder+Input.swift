import Promises

extension FrameDecoder {
    /// True when a decoder of this type may call user code. A constant where the type is known.
    @inlinable @inline(__always)
    static var isUsers: Bool { Self.self != LineDecoder.self && Self.self != DelimiterDecoder.self }

    /// Decodes and consumes the next frame; `nil` if it is incomplete.
    /// - Parameter received: received bytes that are not buffered yet, if any. Those after the frame are then buffered.
    @inlinable @inline(__always)
    mutating func next(
        _ received: UnsafeRawBufferPointer, in connection: Connection, _ missing: inout Int
    ) throws -> Frame? {
        var received = received
        repeat {
            missing = 1
            var frame: Frame?
            try connection.consumeInput(received, callsUser: Self.isUsers) { bytes in
                switch try decode(bytes, of: connection) {
                case .frame(let found, let consumed):
                    frame = .some(found)
                    return consumed
                case .skipped(let consumed):
                    // A decoder that skips nothing waits for more bytes, or it would be called for ever.
                    missing = consumed > 0 ? 0 : 1
                    return consumed
                case .incomplete(let count):
                    missing = max(count, 1)
                    return 0
                }
            }
            // Moves the frame; a copy would cost a retain and a release.
            if case .some = frame { return frame.take() }
            received = UnsafeRawBufferPointer(start: nil, count: 0)
        } while missing == 0
        return nil
    }

    @inlinable @inline(__always)
    mutating func decode(_ bytes: UnsafeRawBufferPointer, of connection: Connection) throws -> DecodedFrame<Frame> {
        let decoded: DecodedFrame<Frame>
        do { decoded = try decode(bytes.bytes) } catch {
            connection.noteRefusedInput(error)
            throw error
        }
        switch decoded {
        case .frame(_, let consumed):
            if consumed < 1 || consumed > bytes.count { throw miscount("frame", consumed, of: bytes.count) }
        case .skipped(let consumed):
            if consumed < 0 || consumed > bytes.count { throw miscount("skipped", consumed, of: bytes.count) }
            connection.noteSkipped(consumed, of: bytes.count)
        case .incomplete: break
        }
        return decoded
    }

    /// Decodes the remaining bytes if the stream has ended, and drops them if they are a frame.
    @inlinable
    mutating func last(in connection: Connection) throws -> Frame? {
        guard connection.hasLastInput else { return nil }
        var frame: Frame?
        try connection.consumeInput(UnsafeRawBufferPointer(start: nil, count: 0), callsUser: Self.isUsers) { bytes in
            frame = try decodeLast(bytes, of: connection)
            return frame == nil ? 0 : bytes.count
        }
        return frame
    }

    @inlinable @inline(__always)
    mutating func decodeLast(_ bytes: UnsafeRawBufferPointer, of connection: Connection) throws -> Frame? {
        do { return try decodeLast(bytes.bytes) } catch {
            connection.noteRefusedInput(error)
            throw error
        }
    }

    @usableFromInline @inline(never)
    func miscount(_ result: String, _ consumed: Int, of count: Int) -> PromiseError {
        .badInput("\(type(of: self)) has returned .\(result)(consumed: \(consumed)) for \(count) bytes")
    }
}
