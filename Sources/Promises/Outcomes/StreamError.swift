/// An error in a stream's content, not in the stream itself. No bytes are lost: the next read returns them.
public enum StreamError: Error, Hashable, Sendable {
    /// The input that a read expected.
    public enum Expectation: Hashable, Sendable {
        /// This number of bytes.
        case bytes(Int)
        /// All bytes up to this delimiter. A line's delimiter is a newline.
        case delimiter([UInt8])
        /// A decoder's frame.
        case frame
    }

    /// The peer has ended its side after only `got` of the expected bytes.
    case endedEarly(expected: Expectation, got: Int)
    /// A frame has more than `limit` bytes, or that many bytes contain no delimiter.
    case limitExceeded(limit: Int)
    /// A line is not UTF-8; `position` is the index of its first invalid byte.
    case notUTF8(position: Int)
    /// A limit of `Connection.frameTimeouts` expired during a read. `got` is the number of the frame's or message's
    /// bytes that have arrived.
    case timedOut(got: Int)
}

extension StreamError: CustomStringConvertible {
    /// A sentence for people.
    public var description: String {
        switch self {
        case .endedEarly(.bytes(let count), let got): "the stream ended after \(got) of \(count) bytes"
        case .endedEarly(.delimiter(let delimiter), let got):
            "the stream ended after \(got) bytes, without the delimiter \(delimiter)"
        case .endedEarly(.frame, let got): "the stream ended after \(got) bytes of a frame"
        case .limitExceeded(let limit): "a line or frame of more than \(limit) bytes"
        case .notUTF8(let position): "the byte at position \(position) of the line is not UTF-8"
        case .timedOut(0): "no frame began within the time limit"
        case .timedOut(let got): "the frame was not complete within the time limit, of which \(got) bytes had come"
        }
    }
}
