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

    /// The start of the first invalid character, by the table of well-formed sequences of the Unicode Standard.
    static func firstFlaw(_ bytes: [UInt8]) -> Int? {
        var place = 0
        while place < bytes.count {
            let tails: [ClosedRange<UInt8>]
            let any: ClosedRange<UInt8> = 0x80...0xBF
            switch bytes[place] {
            case 0x00...0x7F: tails = []
            case 0xC2...0xDF: tails = [any]
            case 0xE0: tails = [0xA0...0xBF, any]
            case 0xE1...0xEC, 0xEE...0xEF: tails = [any, any]
            case 0xED: tails = [0x80...0x9F, any]
            case 0xF0: tails = [0x90...0xBF, any, any]
            case 0xF1...0xF3: tails = [any, any, any]
            case 0xF4: tails = [0x80...0x8F, any, any]
            default: return place
            }
            let given = bytes.dropFirst(place + 1).prefix(tails.count)
            guard given.count == tails.count, zip(given, tails).allSatisfy({ $1.contains($0) }) else { return place }
            place += 1 + tails.count
        }
        return nil
    }
}
