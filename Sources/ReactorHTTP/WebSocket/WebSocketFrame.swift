import Promises
import ReactorIO

extension ByteWriter {
    /// Appends a frame's head up to its mask: RFC 6455, section 5.2.
    /// - Parameters:
    ///   - first: the opcode, and the flag of a last fragment.
    ///   - count: the payload's length in bytes.
    mutating func append(frame first: UInt8, count: Int, isMasked: Bool) {
        let mark: UInt8 = isMasked ? 0x80 : 0
        append(first)
        switch count {
        case 0..<126: append(mark | UInt8(count))
        case 126..<65_536:
            append(mark | 126)
            append(UInt16(count))
        default:
            append(mark | 127)
            append(UInt64(count))
        }
    }
}

/// Sends `message` to each of `sockets`; servers' sockets share one encoded frame.
///
/// ```swift
/// broadcast(.text("\(name): \(line)"), to: members.values, overflow: .abort)
/// ```
///
/// Skips closed sockets. Sends at the end of the turn.
/// - Parameters:
///   - message: the message.
///   - sockets: sockets of this thread's loop.
///   - overflow: the action for a socket with `connection.writeQueueLimit` (4 MiB) queued, because its peer does not
///     read: skip the message, or disconnect the peer as `send` does.
/// - Returns: the number of sockets that took the message.
@discardableResult
public func broadcast(
    _ message: WebSocket.Message, to sockets: some Sequence<WebSocket>, overflow: WriteOverflow
) -> Int {
    let bytes =
        switch message {
        case .text(let text): Array(text.utf8)
        case .bytes(let bytes): bytes
        }
    let first: UInt8 = if case .text = message { 0x81 } else { 0x82 }
    var head = ByteWriter()
    head.append(frame: first, count: bytes.count, isMasked: false)
    let frame = head.bytes + bytes
    return sockets.reduce(0) { count, socket in
        let isTaken = socket.post(socket.isClient ? socket.masked(first, bytes) : frame, overflow)
        return isTaken ? count + 1 : count
    }
}
