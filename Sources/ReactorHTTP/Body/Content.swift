import Promises
import ReactorIO

/// A message's content after the head.
enum Content {
    case text(String)
    case bytes([UInt8])
    /// A body of this length, or chunked if `nil`.
    case stream(length: Int?, (BodyOutput) throws -> Promise<Void>)
    /// Another protocol; responses only.
    case upgrade(String, (Connection) throws -> Promise<Void>)

    /// The length in bytes; `nil` if only the content's end shows it.
    var length: Int? {
        switch self {
        case .text(let text): text.utf8.count
        case .bytes(let bytes): bytes.count
        case .stream(let length, _): length
        case .upgrade: nil
        }
    }

    /// The whole content, as a peer would receive it.
    func bytes() -> Promise<[UInt8]> {
        switch self {
        case .text(let text): return .value(Array(text.utf8))
        case .bytes(let bytes): return .value(bytes)
        case .stream(let length, let body):
            var all: [UInt8] = []
            let output = BodyOutput(length: length) { part in
                all += part
                return .value
            }
            return firstly { try body(output) }.then { try output.finish() }.map { all }
        case .upgrade: return .value([])
        }
    }
}

extension Connection {
    /// Sends a head, then any content that is in memory.
    func write(_ content: Content?, behind head: (inout ByteWriter) -> Void) -> Promise<Void> {
        if case .bytes(let bytes)? = content, bytes.count >= 16_384 {
            // Does not copy a large body.
            return write { output in
                head(&output)
                output.append(SharedBytes(bytes))
            }
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
