/// What was wrong with the bytes of a stream, where nothing was wrong with the stream itself. The bytes in question are
/// not lost: the next read brings them.
public enum StreamError: Error, Hashable, Sendable {
    /// What a read waits for.
    public enum Expectation: Hashable, Sendable {
        /// So many bytes.
        case bytes(Int)
        /// Bytes up to this delimiter. A line's is a newline.
        case delimiter([UInt8])
    }

    /// The peer has ended its side when only `got` bytes of what was expected were there.
    case endedEarly(expected: Expectation, got: Int)
    /// No delimiter has come within `limit` bytes.
    case limitExceeded(limit: Int)
    /// A line is not UTF-8; `position` is that of its first byte which cannot be.
    case notUTF8(position: Int)
}

extension StreamError: CustomStringConvertible {
    /// A sentence for people.
    public var description: String {
        switch self {
        case .endedEarly(.bytes(let count), let got): "the stream ended after \(got) of \(count) bytes"
        case .endedEarly(.delimiter(let delimiter), let got):
            "the stream ended after \(got) bytes, without the delimiter \(delimiter)"
        case .limitExceeded(let limit): "no delimiter within \(limit) bytes"
        case .notUTF8(let position): "the byte at position \(position) of the line is not UTF-8"
        }
    }
}
