import Testing

/// That what is compiled here is what the documentation says. `.ci/snippets.py --check` compares every byte; this one
/// looks for the blocks, so that `swift test` alone notices a page that has changed.
@Suite struct Drift {
    @Test func everyBlockIsCompiledAsItStands() throws {
        let folders = [
            "Tests/DocumentationTests/Pages", "Tests/Fixtures/Manifests",
            "Tests/HTTPPagesTests/Pages", "Integrations/Tests/IntegrationPagesTests/Pages",
            "Integrations/Sources/https-hello", "Examples/Sources/count-lines",
            "Examples/Sources/NotesService", "Examples/Sources/json-service", "Examples/Tests/NotesServiceTests",
        ]
        let generated = try folders.flatMap(Repository.files)
        let code = try Self.code(of: generated.flatMap(Repository.lines))
        let pages = try ["README.md", "CONTRIBUTING.md"] + Repository.filesBelow("docs").filter { $0.hasSuffix(".md") }
        #expect(pages.count > 5)
        var blocks = 0
        for page in pages {
            for block in Self.blocks(of: try Repository.lines(of: page)) {
                blocks += 1
                let wanted = Self.code(of: block.lines)
                let isCompiled = wanted == "\n\n" || code.contains(wanted)
                #expect(
                    isCompiled,
                    "\(page):\(block.line): not in Tests/DocumentationTests as it stands; run .ci/snippets.py")
            }
        }
        #expect(blocks > 20)
    }

    /// Without indentation, empty lines, and what stands elsewhere in the generated file; whole lines only.
    private static func code(of lines: [Substring]) -> String {
        let elsewhere = ["import ", "// swift-tools-version", "// Made by ", "// swift-format-ignore-file"]
        let code = lines.map { $0.drop { $0 == " " } }
            .filter { line in !line.isEmpty && !elsewhere.contains { line.hasPrefix($0) } }
        return "\n" + code.joined(separator: "\n") + "\n"
    }

    private static func blocks(of page: [Substring]) -> [(line: Int, lines: [Substring])] {
        var blocks: [(line: Int, lines: [Substring])] = []
        var block: (line: Int, lines: [Substring])?
        var isLeftOut = false
        for (number, line) in page.enumerated() {
            if block == nil {
                if line == "```swift" { block = (number + 1, []) }
                if line.hasPrefix("<!-- snippet: not compiled: ") { isLeftOut = true }
            } else if line == "```" {
                if !isLeftOut, let block { blocks.append(block) }
                (block, isLeftOut) = (nil, false)
            } else {
                block?.lines.append(line)
            }
        }
        return blocks
    }
}
