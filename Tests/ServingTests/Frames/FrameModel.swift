@testable import PromisesTestSupport

/// The expected results of reads, from the whole stream at once: how it arrives in pieces must not matter.
struct FramingModel {
    let stream: [UInt8]
    private(set) var place = 0

    init(_ stream: [UInt8]) { self.stream = stream }

    enum Answer: Equatable {
        case bytes([UInt8])
        case line(String)
        /// The stream has ended where an answer could begin.
        case nothing
        case refused(StreamError)
    }

    var rest: ArraySlice<UInt8> { stream[place...] }

    /// Skips bytes that another form of reading has taken.
    mutating func skip(_ count: Int) { place += count }

    mutating func exactly(_ count: Int) -> Answer {
        if rest.count < count { return .refused(.endedEarly(expected: .bytes(count), got: rest.count)) }
        defer { place += count }
        return .bytes(Array(rest.prefix(count)))
    }

    mutating func until(_ delimiter: [UInt8], limit: Int) -> Answer {
        guard let end = first(delimiter) else {
            if rest.count - delimiter.count >= limit { return .refused(.limitExceeded(limit: limit)) }
            return rest.isEmpty
                ? .nothing : .refused(.endedEarly(expected: .delimiter(delimiter), got: rest.count))
        }
        if end > limit { return .refused(.limitExceeded(limit: limit)) }
        defer { place += end + delimiter.count }
        return .bytes(Array(rest.prefix(end)))
    }

    mutating func line(limit: Int) -> Answer {
        let newline = rest.firstIndex(of: 0x0A)
        var text = rest[..<(newline ?? rest.endIndex)]
        let size = text.count
        if text.last == 0x0D { text.removeLast() }
        if text.count > limit { return .refused(.limitExceeded(limit: limit)) }
        if newline == nil {
            return size == 0 ? .nothing : .refused(.endedEarly(expected: .delimiter([0x0A]), got: size))
        }
        if let flaw = Self.firstFlaw(Array(text)) { return .refused(.notUTF8(position: flaw)) }
        place += size + 1
        return .line(String(decoding: text, as: UTF8.self))
    }

    /// The place where `delimiter` begins, by trying each one.
    private func first(_ delimiter: [UInt8]) -> Int? {
        (0..<max(0, rest.count - delimiter.count + 1)).first { rest.dropFirst($0).starts(with: delimiter) }
    }

    /// The start of the first invalid character: the rest of what is a text up to there.
    private static func firstFlaw(_ bytes: [UInt8]) -> Int? {
        func isText(_ count: Int) -> Bool { String(validating: bytes.prefix(count), as: UTF8.self) != nil }
        return isText(bytes.count) ? nil : (0..<bytes.count).last(where: isText)
    }
}
