import Testing

/// docs/faults.md names a test for each case: that each is there, since names change.
@Suite struct FaultTable {
    private static let folders = [
        "Tests/ReactorTests", "Tests/PromisesTests/IO", "Tests/PromisesTests/Loop", "Tests/EchoServerTests",
    ]

    @Test func everyTestThatItNamesExists() throws {
        let files = try Self.folders.flatMap(Repository.files)
        var sources: [Substring: [Substring]] = [:]
        var names = 0
        for line in try Repository.lines(of: "docs/faults.md") where line.hasPrefix("|") {
            for name in Self.names(in: line) {
                let parts = name.split(separator: ".")
                names += 1
                if sources[parts[0]] == nil {
                    // Two targets may have one of that name.
                    let named = files.filter { $0.hasSuffix("/\(parts[0]).swift") }
                    sources[parts[0]] = try named.flatMap(Repository.lines)
                }
                let isThere = sources[parts[0]]!.contains { $0.contains("func \(parts[1])(") }
                #expect(isThere, "docs/faults.md: there is no test \(name)")
            }
        }
        #expect(names > 100)
    }

    /// `Suite.function` between backquotes.
    private static func names(in line: Substring) -> [Substring] {
        line.split(separator: "`").filter { part in
            let parts = part.split(separator: ".", omittingEmptySubsequences: false)
            return parts.count == 2 && part.first!.isUppercase && parts[1].first?.isLowercase == true
                && part.allSatisfy { $0 == "." || $0.isLetter || $0.isNumber }
        }
    }
}
