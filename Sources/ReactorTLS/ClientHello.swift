#if TLS
import Promises
import ReactorIO

/// The first message of a client, as it arrives. An `SSL` takes 40 KiB, and as much again as the message announces, so
/// a server makes one only when the message is complete: until then a connection takes only the bytes that its client
/// has sent.
struct ClientHello {
    private(set) var bytes: [UInt8] = []
    /// Where the incomplete record begins.
    private var position = 0
    /// How many bytes of the message the earlier records contain.
    private var before = 0
    /// The first four bytes of the message, as far as they have arrived: its type and its length.
    private var head: (value: UInt32, count: Int) = (0, 0)

    /// The maximum size of a record, and the longest message that OpenSSL reads.
    private static let (longestRecord, longestMessage) = (16_384, 131_396)
    /// Including record headers. OpenSSL refuses a message split into more records than that.
    private static let mostBytes = 2 * longestMessage

    /// - Returns: true if the message is complete, or is invalid, so that OpenSSL reports why.
    mutating func append(_ new: UnsafeRawBufferPointer) -> Bool {
        bytes.makeRoom(for: new.count)
        bytes.append(contentsOf: new)
        // Each byte is examined once, however it arrives.
        while bytes.count > position {
            let left = bytes.count - position
            // A handshake record of some version 3.
            if bytes[position] != 22 || left > 1 && bytes[position + 1] != 3 { return true }
            if left < 5 { return false }
            let length = Int(bytes[position + 3]) << 8 | Int(bytes[position + 4])
            guard 1...Self.longestRecord ~= length else { return true }
            let here = min(length, left - 5)
            while head.count < 4, head.count - before < here {
                head.value = head.value << 8 | UInt32(bytes[position + 5 + head.count - before])
                head.count += 1
                // The message type ClientHello.
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
