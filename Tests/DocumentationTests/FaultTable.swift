import Testing

/// docs/reference/faults.md names a test for each case: that each is there, since names change.
@Suite struct FaultTable {
    private static let folders = [
        "Tests/ReactorTests", "Tests/CoreTests", "Tests/OperatorsTests", "Tests/StreamsTests", "Tests/ServingTests",
        "Tests/StressTests", "Tests/EchoServerTests",
    ]

    @Test func everyTestThatItNamesExists() throws {
        var suites: [Substring: [Substring]] = [:]
        for file in try Self.folders.flatMap(Repository.filesBelow) where file.hasSuffix(".swift") {
            let lines = try Repository.lines(of: file)
            let name = file.split(separator: "/").last!.dropLast(".swift".count)
            // Two targets may have one of that name, and a file more suites than that of its name.
            suites[name, default: []] += lines
            for line in lines where line.contains("@Suite") && line.contains("struct ") {
                let suite = line[line.range(of: "struct ")!.upperBound...].prefix { $0.isLetter }
                if suite != name { suites[suite, default: []] += lines }
            }
        }
        var names = 0
        for line in try Repository.lines(of: "docs/reference/faults.md") where line.hasPrefix("|") {
            // The tests stand in the last column.
            for name in Self.names(in: line.split(separator: "|").last ?? "") {
                let parts = name.split(separator: ".")
                names += 1
                let isThere = suites[parts[0]]?.contains { $0.contains("func \(parts[1])(") } ?? false
                #expect(isThere, "docs/reference/faults.md: there is no test \(name)")
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
