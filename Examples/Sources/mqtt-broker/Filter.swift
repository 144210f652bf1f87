/// A topic filter: `+` stands for one level, and `#` at the end for any number of levels. Levels are compared byte by
/// byte: in MQTT two texts are equal if their bytes are, regardless of Unicode equivalence (4.7.3).
struct Filter: Hashable, Sendable {
    private let levels: [ArraySlice<UInt8>]

    /// - Throws: `ProtocolError` unless each wildcard is a whole level, and `#` the last one.
    init(_ text: [UInt8]) throws {
        levels = Filter.levels(of: text)
        if text.isEmpty { throw ProtocolError() }
        for (index, level) in levels.enumerated() where level.contains(where: Filter.isWildcard) {
            let isAllowed = level.count == 1 && (level.first == Filter.one || index == levels.count - 1)
            if !isAllowed { throw ProtocolError() }
        }
    }

    private static let one = UInt8(ascii: "+")
    private static let rest = UInt8(ascii: "#")

    static func isWildcard(_ byte: UInt8) -> Bool { byte == one || byte == rest }

    static func levels(of text: [UInt8]) -> [ArraySlice<UInt8>] {
        text.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    }

    func matches(_ topic: [ArraySlice<UInt8>]) -> Bool {
        // Topics with a dollar sign belong to the broker.
        if topic[0].first == UInt8(ascii: "$"), levels[0].contains(where: Filter.isWildcard) { return false }
        for (index, level) in levels.enumerated() {
            if level.first == Filter.rest { return true }
            guard index < topic.count, level.first == Filter.one || level == topic[index] else { return false }
        }
        return levels.count == topic.count
    }
}
