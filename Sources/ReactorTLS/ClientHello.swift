#if TLS
import Promises
import ReactorIO

/// A client's first message, as it arrives. An `SSL` takes 40 KiB plus the message's announced size, so a server makes
/// one only for a complete message. Until then a connection holds only the received bytes.
struct ClientHello {
    private(set) var bytes: [UInt8] = []
    /// The offset of the incomplete record.
    private var position = 0
    /// The number of message bytes in earlier records.
    private var before = 0
    /// The received part of the message's first four bytes, its type and length.
    private var head: (value: UInt32, count: Int) = (0, 0)

    /// The maximum size of a record, and the longest message that OpenSSL reads.
    private static let (longestRecord, longestMessage) = (16_384, 131_396)
    /// The maximum size including record headers. OpenSSL refuses messages split into more records.
    private static let mostBytes = 2 * longestMessage

    /// - Returns: true if the message is complete, or is invalid and OpenSSL must say why.
    mutating func append(_ new: UnsafeRawBufferPointer) -> Bool {
        bytes.makeRoom(for: new.count)
        bytes.append(contentsOf: new)
        // Examines each byte once, however it arrives.
        while bytes.count > position {
            let left = bytes.count - position
            // Accepts a handshake record of any version 3.
            if bytes[position] != 22 || left > 1 && bytes[position + 1] != 3 { return true }
            if left < 5 { return false }
            let length = Int(bytes[position + 3]) << 8 | Int(bytes[position + 4])
            guard 1...Self.longestRecord ~= length else { return true }
            let here = min(length, left - 5)
            while head.count < 4, head.count - before < here {
                head.value = head.value << 8 | UInt32(bytes[position + 5 + head.count - before])
                head.count += 1
                // 1 is the message type ClientHello.
                if head.count == 1 && head.value != 1 { return true }
            }
            if head.count == 4 {
                let count = Int(head.value & 0xFF_FFFF)
                if count > Self.longestMessage || before + here >= 4 + count { return true }
            }
            if bytes.count > Self.mostBytes { return true }
            if here < length { return false }
            before += length
            position += 5 + length
        }
        return false
    }
}
#endif
