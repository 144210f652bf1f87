import TestSupport
import Testing

/// Typical first code of new users compiles, or docs/guides/compiler-messages.md explains why not, and the fix.
struct FirstStepsTests {
    private static let folder = "Tests/Fixtures/FirstSteps"

    /// The compiler's attempts for one expression, which do not depend on the machine: about 50 ms.
    private static let attempts = ["-Xfrontend", "-solver-scope-threshold=1000"]

    @Test func typesAreFoundWithFewAttempts() throws {
        try check(
            ["Accepted.swift", "AcceptedWithFoundation.swift", "EightSteps.swift", "RefusedLater.swift"], Self.attempts)
    }

    private static let refused = [
        "Refused.swift", "RefusedAnswers.swift", "RefusedForFoundation.swift", "RefusedForImports.swift",
        "RefusedForIsolation.swift", "RefusedHandlers.swift",
    ]

    @Test(arguments: refused + ["RefusedFromPromiseKit.swift"]) func isRefusedWithTheMessagesItAnnounces(name: String)
        throws
    {
        try check([name], ["-typecheck"])
    }

    @Test func thePageExplainsEachMessage() throws {
        let page = try Repository.text(of: "docs/guides/compiler-messages.md").split(separator: "\n")
        for name in Self.refused + ["RefusedLater.swift"] {
            for (line, message) in try Self.expectations(in: name) {
                for text in message.drop(while: { $0 != ":" }).dropFirst(2).split(separator: " | ") {
                    let isOnPage = page.contains { Self.contains($0, text) }
                    expect(isOnPage, "\(name):\(line): the page does not have '\(text)'")
                }
            }
        }
    }

    /// Expects the messages that comments in the files announce, and no others.
    private func check(_ names: [String], _ options: [String]) throws {
        let files = (["Declarations.swift"] + names).map { "\(Self.folder)/\($0)" }
        let said = try Compiler.diagnostics(of: Repository.absolute(files), module: "FirstSteps", options)
        for name in names {
            var expected = Dictionary(uniqueKeysWithValues: try Self.expectations(in: name))
            for one in Set(said.all) where one.file == name {
                guard let message = expected[one.line] else {
                    // A line with several messages announces the one that the page explains.
                    Issue.record("\(one)")
                    continue
                }
                if message.split(separator: " | ").contains(where: { Self.contains(one.text, $0) }) {
                    expected[one.line] = ""
                }
            }
            for (line, message) in expected where message != "" {
                Issue.record("\(name):\(line) compiles without '\(message)'")
            }
        }
        expect(said.all.allSatisfy { names.contains($0.file) }, "\(said.output)")
    }

    private static func contains(_ line: some StringProtocol, _ text: some StringProtocol) -> Bool {
        line.indices.contains { line[$0...].hasPrefix(text) }
    }

    /// Lines, from 1, and the text after `// error: ` or `// warning: `, with that word. Compilers of different versions say
    /// one of the texts between ` | `.
    private static func expectations(in name: String) throws -> [(Int, String)] {
        try Repository.lines(of: "\(folder)/\(name)").enumerated().compactMap { number, line in
            for kind in ["// error: ", "// warning: "] {
                guard let start = line.indices.first(where: { line[$0...].hasPrefix(kind) }) else { continue }
                return (number + 1, String(line[start...].dropFirst(3)))
            }
            return nil
        }
    }
}
