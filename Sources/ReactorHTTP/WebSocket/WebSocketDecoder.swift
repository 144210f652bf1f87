import Promises
import ReactorIO

enum WebSocketEvent {
    case message(WebSocket.Message)
    case ping([UInt8])
    /// A pong, or a fragment before the last.
    case signOfLife
    case close(WebSocketError)
}

/// Decodes the peer's frames, and joins message fragments: RFC 6455, section 5.
final class WebSocketDecoder: FrameDecoder {
    let limit: Int
    /// True when the peer is a client, which masks its frames.
    private let expectsMasks: Bool
    /// A message whose last fragment has not arrived.
    private var begun: (isText: Bool, bytes: [UInt8])?

    @exclusivity(unchecked) var waiting = WebSocketMessages()

    /// The peer's violation of the protocol.
    private(set) var failure: WebSocketError?

    init(limit: Int, expectsMasks: Bool) {
        self.limit = min(max(limit, 0), .max / 4)
        self.expectsMasks = expectsMasks
    }

    var isInsideMessage: Bool { begun != nil }

    var heldBytes: Int { (begun?.bytes.capacity ?? 0) + waiting.byteCount }

    func decode(_ bytes: RawSpan) throws -> DecodedFrame<WebSocketEvent> {
        do { return try .reading(bytes) { reader in try event(&reader) } } catch {
            failure = error as? WebSocketError
            throw error
        }
    }

    private func event(_ reader: inout ByteReader) throws -> WebSocketEvent {
        let (first, second) = (try reader.byte(), try reader.byte())
        let (isLast, code) = (first & 0x80 != 0, first & 0x0F)
        if first & 0x70 != 0 { throw WebSocketError(1002, "a reserved bit") }
        if (second & 0x80 != 0) != expectsMasks {
            throw WebSocketError(1002, expectsMasks ? "a frame without a mask" : "a frame with a mask")
        }
        // Checks before more bytes arrive, since they may never.
        let short = Int(second & 0x7F)
        try check(code, isLast, short: short)
        let count = try length(&reader, short)
        // The mask's first byte is the lowest. Any four bytes are valid.
        let mask = expectsMasks ? UInt32(littleEndian: try reader.bytes(4).unsafeLoadUnaligned(as: UInt32.self)) : 0
        let payload = try reader.bytes(count)
        if code == 1, isLast {
            // The usual case, without an array.
            if count > limit { throw tooLong }
            return .message(.text(try unmaskedText(payload, mask)))
        }
        var bytes = [UInt8](payload)
        bytes.mask(with: mask)
        return try event(code, isLast, bytes)
    }

    private var tooLong: WebSocketError { WebSocketError(1009, "a message of more than \(limit) bytes") }

    private func check(_ code: UInt8, _ isLast: Bool, short length: Int) throws(WebSocketError) {
        switch code {
        case 0: if begun == nil { throw WebSocketError(1002, "a fragment of no message") }
        case 1, 2: if begun != nil { throw WebSocketError(1002, "a message inside of another") }
        case 8, 9, 10: if !isLast || length > 125 { throw WebSocketError(1002, "a control frame that is long") }
        default: throw WebSocketError(1002, "the opcode \(code)")
        }
    }

    /// - Parameter short: the length, or 126 or 127 for a length in the following 2 or 8 bytes.
    private func length(_ reader: inout ByteReader, _ short: Int) throws -> Int {
        var length = UInt64(short)
        if short == 126 { length = UInt64(try reader.integer(as: UInt16.self)) }
        if short == 127 { length = try reader.integer() }
        if short == 126 && length < 126 || short == 127 && length < 65_536 {
            throw WebSocketError(1002, "a length in more bytes than needed")
        }
        // Control frames are shorter, and may come between fragments.
        if short >= 126, length > limit - (begun?.bytes.count ?? 0) { throw tooLong }
        return Int(length)
    }

    private func event(_ code: UInt8, _ isLast: Bool, _ payload: [UInt8]) throws(WebSocketError) -> WebSocketEvent {
        switch code {
        case 8: return .close(try close(payload))
        case 9: return .ping(payload)
        case 10: return .signOfLife
        default: break
        }
        var message = begun.take() ?? (code == 1, [])
        if payload.count > limit - message.bytes.count { throw tooLong }
        if message.bytes.isEmpty {
            message.bytes = payload
        } else {
            message.bytes.makeRoom(for: payload.count)
            message.bytes += payload
        }
        guard isLast else {
            begun = message
            return .signOfLife
        }
        if !message.isText { return .message(.bytes(message.bytes)) }
        return .message(.text(try decodedText(message.bytes.span.bytes)))
    }

    /// RFC 6455, sections 5.5.1 and 7.4.
    private func close(_ payload: [UInt8]) throws(WebSocketError) -> WebSocketError {
        if payload.isEmpty { return WebSocketError(1005, "") }
        guard payload.count >= 2 else { throw WebSocketError(1002, "half a code") }
        let code = UInt16(payload[0]) << 8 | UInt16(payload[1])
        guard isCloseCode(code) else { throw WebSocketError(1002, "the code \(code)") }
        guard let reason = try? String(utf8: payload.span.bytes.extracting(2...)) else {
            throw WebSocketError(1007, "a reason that is not UTF-8")
        }
        return WebSocketError(code, reason)
    }
}

private func unmaskedText(_ payload: RawSpan, _ mask: UInt32) throws(WebSocketError) -> String {
    let result = withUnsafeTemporaryAllocation(byteCount: payload.byteCount, alignment: 8) { memory in
        payload.withUnsafeBytes { unmask($0, mask, into: memory) }
        // All bytes are initialized, and the text copies them.
        return Result { () throws(WebSocketError) in try decodedText(UnsafeRawBufferPointer(memory).bytes) }
    }
    return try result.get()
}

extension [UInt8] {
    mutating func mask(with mask: UInt32) {
        if mask != 0 { withUnsafeMutableBytes { unmask(UnsafeRawBufferPointer($0), mask, into: $0) } }
    }
}

/// RFC 6455, section 5.3.
/// - Parameter memory: as large as the input; may be the input itself.
private func unmask(_ bytes: UnsafeRawBufferPointer, _ mask: UInt32, into memory: UnsafeMutableRawBufferPointer) {
    guard let start = memory.baseAddress, let source = bytes.baseAddress else { return }
    if source != UnsafeRawPointer(start) { start.copyMemory(from: source, byteCount: bytes.count) }
    var mask = mask
    func unmask(_ range: Range<Int>) {
        for index in range {
            memory[index] ^= UInt8(truncatingIfNeeded: mask)
            mask = mask >> 8 | mask << 24
        }
    }
    // Unmasks eight bytes at a time from an aligned address, through a typed pointer: a raw one takes 300 instructions
    // per access in debug builds.
    let first = min(-Int(bitPattern: start) & 7, bytes.count)
    unmask(0..<first)
    let count = (bytes.count - first) / 8
    let wide = (UInt64(mask) << 32 | UInt64(mask)).littleEndian
    (start + first).withMemoryRebound(to: UInt64.self, capacity: count) { words in
        var index = 0
        while index < count {
            words[index] ^= wide
            index &+= 1
        }
    }
    unmask(first + count * 8..<bytes.count)
}

private func decodedText(_ bytes: RawSpan) throws(WebSocketError) -> String {
    // `String(validating:)` would look up metadata in each call.
    do { return try String(utf8: bytes) } catch { throw WebSocketError(1007, "a text that is not UTF-8") }
}

/// True when a close frame may have this code.
func isCloseCode(_ code: UInt16) -> Bool {
    switch code {
    case 1000...1003, 1007...1014, 3000...4999: true
    default: false
    }
}

/// The reason why a WebSocket ended, with the close code: RFC 6455, section 7.4.
public struct WebSocketError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The close frame's code; 1005 for a frame without a code, 1006 if the connection ended without a frame.
    public let code: UInt16
    /// The reason from the peer, any text of up to 123 bytes, or from the library.
    public let reason: String

    init(_ code: UInt16, _ reason: String) { (self.code, self.reason) = (code, reason) }

    /// `1002: a frame without a mask`.
    public var description: String { reason.isEmpty ? "\(code)" : "\(code): \(reason.inOneLine)" }
}
