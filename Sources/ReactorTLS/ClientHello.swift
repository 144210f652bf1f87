#if TLS
import Promises

/// The first message of a client, as it arrives. A server makes no `SSL`, which takes 40 KiB and as much again as the message
/// announces, before it has the whole of it: until then a connection takes the bytes that its client has sent.
struct ClientHello {
    private(set) var bytes: [UInt8] = []
    /// Where the record begins that is incomplete.
    private var position = 0
    /// How many bytes of the message are in the records before that.
    private var before = 0
    /// The first four bytes of the message, as far as they are here: its type, and its length.
    private var head: (value: UInt32, count: Int) = (0, 0)

    /// What a record may have, and the longest message that OpenSSL reads.
    private static let (longestRecord, longestMessage) = (16_384, 131_396)
    /// With the heads of its records. What is split into more of them, OpenSSL refuses.
    private static let mostBytes = 2 * longestMessage

    /// - Returns: whether the message is whole, or is none, so that OpenSSL says what is wrong.
    mutating func append(_ new: UnsafeRawBufferPointer) -> Bool {
        bytes.makeRoom(for: new.count)
        bytes.append(contentsOf: new)
        // Each byte is looked at once, however it arrives.
        while bytes.count > position {
            let left = bytes.count - position
            // A handshake of some version 3.
            if bytes[position] != 22 || left > 1 && bytes[position + 1] != 3 { return true }
            if left < 5 { return false }
            let length = Int(bytes[position + 3]) << 8 | Int(bytes[position + 4])
            guard 1...Self.longestRecord ~= length else { return true }
            let here = min(length, left - 5)
            while head.count < 4, head.count - before < here {
                head.value = head.value << 8 | UInt32(bytes[position + 5 + head.count - before])
                head.count += 1
                // The type of a client's hello.
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
