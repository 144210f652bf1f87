/// A filter of topics: `+` stands for one level, and `#` at the end for any number of levels.
struct Filter: Hashable, Sendable {
    private let levels: [Substring]

    init(_ text: String) throws {
        levels = Filter.levels(of: text)
        let isPlain = { (level: Substring) in !level.contains { $0 == "+" || $0 == "#" } }
        guard !text.isEmpty, levels.dropLast().allSatisfy({ $0 == "+" || isPlain($0) }),
            let last = levels.last, ["+", "#"].contains(last) || isPlain(last)
        else { throw ProtocolError() }
    }

    static func levels(of text: String) -> [Substring] { text.split(separator: "/", omittingEmptySubsequences: false) }

    func matches(_ topic: [Substring]) -> Bool {
        // Topics with a dollar sign are the broker's own ones.
        if topic[0].hasPrefix("$") && ["+", "#"].contains(levels[0]) { return false }
        for (index, level) in levels.enumerated() {
            if level == "#" { return true }
            guard index < topic.count, level == "+" || level == topic[index] else { return false }
        }
        return levels.count == topic.count
    }
}
