import Promises

/// What stands behind the head of a message.
enum Content {
    case text(String)
    case bytes([UInt8])
    /// Of this length if it is known.
    case stream(length: Int?, (BodyOutput) throws -> Promise<Void>)
    /// Another protocol; of responses only.
    case upgrade(String, (Connection) throws -> Promise<Void>)

    /// The number of bytes; `nil` where only the end says it.
    var length: Int? {
        switch self {
        case .text(let text): text.utf8.count
        case .bytes(let bytes): bytes.count
        case .stream(let length, _): length
        case .upgrade: nil
        }
    }
}

extension Connection {
    /// Sends a head, and behind it the content that is here.
    func write(_ content: Content?, behind head: (inout ByteWriter) -> Void) -> Promise<Void> {
        if case .bytes(let bytes)? = content, bytes.count > 16_384 {
            // A large body is sent without a copy.
            var output = ByteWriter(reserving: 1024)
            head(&output)
            return write([output.bytes, bytes])
        }
        return write { output in
            head(&output)
            switch content {
            case .text(let text): output.append(text)
            case .bytes(let bytes): output.append(bytes)
            case .stream, .upgrade, nil: break
            }
        }
    }
}
