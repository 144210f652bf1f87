import TestSupport
import Testing

/// Single-threaded code of users needs no annotation in Swift 6 mode, and races do not compile.
@Suite(.ownThread) struct SwiftSix {
    /// Settings of a package: Xcode's new projects set both of the last two.
    private static let settings = [
        [], ["-default-isolation", "MainActor"], ["-enable-upcoming-feature", "NonisolatedNonsendingByDefault"],
        ["-default-isolation", "MainActor", "-enable-upcoming-feature", "NonisolatedNonsendingByDefault"],
    ]

    @Test func codeOnOneThreadCompilesInSilence() throws {
        let files = try Repository.files(in: "Tests/Fixtures/OneThread")
        for file in files {
            let text = try Repository.text(of: file)
            for word in ["@Sendable", "@unchecked", "nonisolated", "sending ", "@MainActor", "@preconcurrency"] {
                expect(!text.hasSomewhere(word), "\(file) has the word \(word)")
            }
        }
        for options in Self.settings + [["-swift-version", "5"]] {
            let said = try Compiler.diagnostics(of: Repository.absolute(files), module: "OneThread", options)
            expectEqual(said.output, "", "\(options)")
        }
    }

    @Test func actorsAndAsyncFunctionsOnLoopsCompileInSilence() throws {
        let files = try Repository.files(in: "Tests/Fixtures/AsyncOnLoops")
        for file in files {
            let text = try Repository.text(of: file)
            for word in ["@unchecked", "nonisolated(unsafe)", "@preconcurrency"] {
                expect(!text.hasSomewhere(word), "\(file) has the word \(word)")
            }
        }
        for options in Self.settings {
            let said = try Compiler.diagnostics(of: Repository.absolute(files), module: "AsyncOnLoops", options)
            expectEqual(said.output, "", "\(options)")
        }
    }

    /// A compiler with diagnostics here has learned to see one of the races, which then belongs to AcrossThreads.
    @Test func racesThatTheCompilerDoesNotSeeCompileInSilence() throws {
        let files = try Repository.files(in: "Tests/Fixtures/RacesUnseen")
        let said = try Compiler.diagnostics(of: Repository.absolute(files), module: "RacesUnseen")
        expectEqual(said.output, "")
    }

    /// The compiler diagnoses in stages, and starts the next stage only if the last one found no error. So the refused
    /// code is removed, and the rest compiled again.
    @Test func codeAcrossThreadsDoesNotCompile() throws {
        let files = try Repository.files(in: "Tests/Fixtures/AcrossThreads")
        var expected: [String: [Int: String]] = [:]
        for file in files {
            let lines = try Repository.lines(of: file)
            for (number, line) in lines.enumerated() {
                guard let text = line.text(after: "// error: ") else { continue }
                expected[file.nameOfFile, default: [:]][number + 1] = text
            }
        }
        expect(expected.count >= files.count - 1, "all but the file of what the mistakes are made with")
        var left = files
        while true {
            let said = try Compiler.diagnostics(of: Repository.absolute(left), module: "AcrossThreads")
            if said.all.isEmpty {
                expectEqual(said.output, "")
                break
            }
            for one in Set(said.all) {
                let fragment = expected[one.file]?.removeValue(forKey: one.line)
                let isExpected = fragment.map(one.text.hasSomewhere) ?? false
                expect(isExpected, "\(one) where \(fragment ?? "nothing") was expected")
            }
            let refused = Set(said.all.map(\.file))
            let count = left.count
            left.removeAll { refused.contains($0.nameOfFile) }
            try #require(left.count < count, "\(said.output)")
        }
        for (file, lines) in expected {
            for (line, fragment) in lines { Issue.record("\(file):\(line) compiles without '\(fragment)'") }
        }
    }
}

extension StringProtocol {
    fileprivate func hasSomewhere(_ text: String) -> Bool { indices.contains { self[$0...].hasPrefix(text) } }

    fileprivate func text(after mark: String) -> String? {
        indices.first { self[$0...].hasPrefix(mark) }.map { String(self[$0...].dropFirst(mark.count)) }
    }

    fileprivate var nameOfFile: String { lastIndex(of: "/").map { String(self[index(after: $0)...]) } ?? String(self) }
}
