import Glibc
import Reactor

/// The reads of single frames. Received bytes are decoded at once; `FrameReader` waits for the rest.
// An enumeration, like `ByteRead`: the functions of a class receive its metadata, which each caller looks up.
@usableFromInline
enum FrameRead {
    /// Reads `count` bytes.
    @usableFromInline
    static func bytes(_ count: Int, from connection: Connection) -> Promise<[UInt8]> {
        if count < 1 { return refuse("exactly: \(count)", connection) }
        if let refusal = connection.refusalToRead { return Promise(refused: refusal) }
        let missing = count - connection.bufferedByteCount
        if missing <= 0 { return Promise(PromiseCore.fulfilled(connection.input.take(count))) }
        let core = PromiseCore.pending(.of(Produced<[UInt8]>.self))
        FrameReader.wait(
            core, for: missing, of: connection,
            ended: FrameReader.end(of: connection, nil, expecting: .bytes(count)), held: 0
        ) { connection, missing in
            if let received = FrameReader.takeReceived(by: connection) {
                // As many bytes as were missing.
                connection.input.keep(UnsafeRawBufferPointer(rebasing: received[count...]))
                let bytes = [UInt8](UnsafeRawBufferPointer(rebasing: received[..<count]))
                return { $0.fulfill(bytes) }
            }
            missing = count - connection.bufferedByteCount
            if missing > 0 { return FrameReader.end(of: connection, nil, expecting: .bytes(count)) }
            let bytes = connection.input.take(count)
            return { $0.fulfill(bytes) }
        }
        return Promise(core)
    }

    @usableFromInline
    static func bytes(until delimiter: [UInt8], _ limit: Int, from connection: Connection) -> Promise<[UInt8]?> {
        if delimiter.isEmpty { return refuse("until: an empty delimiter", connection) }
        if limit < 1 { return refuse("limit: \(limit)", connection) }
        return frame(DelimiterDecoder(delimiter, limit: limit), from: connection)
    }

    @usableFromInline
    static func line(_ limit: Int, from connection: Connection) -> Promise<String?> {
        limit < 1 ? refuse("limit: \(limit)", connection) : frame(LineDecoder(limit: limit), from: connection)
    }

    private static func refuse<Value>(_ detail: String, _ connection: Connection) -> Promise<Value> {
        Promise(refused: SystemError(connection.readCall, EINVAL, detail: detail))
    }

    /// Reads the next frame. Specialized in the module of the decoder, so that the read of a buffered frame looks up no
    /// type metadata.
    @inlinable
    static func frame<Decoder: FrameDecoder>(
        _ decoder: Decoder, from connection: Connection
    ) -> Promise<Decoder.Frame?> {
        if let refusal = connection.refusalToRead { return Promise(refused: refusal) }
        var decoder = decoder
        var missing = 0
        do {
            let frame = try decoder.next(in: connection, &missing)
            if case .some = frame { return Promise(PromiseCore.fulfilled(consume frame)) }
        } catch { return Promise(refused: error) }
        return frameWhenComplete(decoder, missing: missing, from: connection)
    }

    /// Waits for further input, and decodes it together with the buffered bytes. Specialized like `frame`; code that
    /// does not depend on the frame's type is in `FrameReader`.
    @inlinable @inline(never)
    static func frameWhenComplete<Decoder: FrameDecoder>(
        _ decoder: Decoder, missing: Int, from connection: Connection
    ) -> Promise<Decoder.Frame?> {
        var decoder = decoder
        do {
            let frame = try decoder.last(in: connection)
            if case .some = frame { return Promise(PromiseCore.fulfilled(consume frame)) }
        } catch { return Promise(refused: error) }
        // The decoder may have begun a read.
        if let refusal = connection.refusalToRead { return Promise(refused: refusal) }
        let core = PromiseCore.pending(.of(Produced<Decoder.Frame?>.self))
        let none: FrameReader.Settling = { $0.fulfill(Decoder.Frame?.none) }
        FrameReader.wait(
            core, for: missing, of: connection,
            ended: FrameReader.end(of: connection, none, expecting: decoder.expectation), held: decoder.heldBytes
        ) { connection, missing in
            let received = FrameReader.takeReceived(by: connection)
            let frame = try decoder.next(received, in: connection, &missing) ?? decoder.last(in: connection)
            guard case .some = frame else {
                FrameReader.noteHeld(decoder.heldBytes, by: connection)
                return FrameReader.end(of: connection, none, expecting: decoder.expectation)
            }
            return { $0.fulfill(frame) }
        }
        return Promise(core)
    }
}
