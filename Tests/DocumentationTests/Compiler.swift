import Glibc
import TestSupport
import Testing

/// The Swift compiler, as clients of the library use it.
struct Compiler {
    /// An error or a warning.
    struct Diagnostic: Hashable, CustomStringConvertible {
        let file: String
        let line: Int
        let text: String

        var description: String { "\(file):\(line): \(text)" }
    }

    /// The diagnostics for `files`, a module that uses the modules of this build. Sendability is checked after type
    /// checking, so the compiler usually continues to `-emit-sil`.
    static func diagnostics(
        of files: [String], module: String, _ options: [String] = [], until stage: String = "-emit-sil"
    ) throws -> (all: [Diagnostic], output: String) {
        // Not /dev/null: if there are errors, the driver removes its output, which root may.
        let folder = Folder()
        let output = try withExtendedLifetime(folder) {
            try run(try command(module) + [stage, "-o", folder["output"]] + options + files)
        }
        return (output.split(separator: "\n").compactMap(diagnostic), output)
    }

    /// Builds a program from `files` and this build's objects of `libraries`, and returns the compiler's diagnostics.
    static func program(
        _ program: String, of files: [String], module: String, libraries: [String], _ options: [String] = []
    ) throws -> String {
        let objects = try libraries.flatMap { try Self.objects(of: $0) }
        let sanitizer = ["address": "__asan_init", "thread": "__tsan_init"].first { dlsym(nil, $0.value) != nil }
        let sanitized = sanitizer.map { ["-sanitize=\($0.key)"] } ?? []
        return try run(
            try command(module) + ["-parse-as-library", "-o", program] + sanitized + options + files + objects)
    }

    /// The objects of this build. A folder also keeps those of files that the module no longer has.
    private static func objects(of library: String) throws -> [String] {
        let folder = "\(try products)/\(library).build"
        let names = try Repository.names(in: folder)
        let inSwift = names.contains("output-file-map.json")
        let map = inSwift ? try Repository.text(ofFile: "\(folder)/output-file-map.json") : ""
        return names.filter { $0.hasSuffix(".o") && (!inSwift || map.contains("/\($0)\"")) }.map { "\(folder)/\($0)" }
    }

    /// Without `-package-name`: the files are another package's, and see only what is public.
    private static func command(_ module: String) throws -> [String] {
        let products = try products
        return [
            "swiftc", "-swift-version", "6", "-wmo", "-module-name", module, "-I", "\(products)/Modules",
            "-Xcc", "-fmodule-map-file=\(products)/CLinux.build/module.modulemap",
        ]
    }

    /// Compiles a `Package.swift`.
    static func diagnostics(ofManifest file: String) throws -> (all: [Diagnostic], output: String) {
        let output = try run(
            [
                "sh", "-c",
                """
                folder=$(dirname "$(readlink -f "$(command -v swiftc)")")
                exec swiftc -typecheck -package-description-version 6.2 -I "$folder/../lib/swift/pm/ManifestAPI" "$0"
                """, file,
            ])
        return (output.split(separator: "\n").compactMap(diagnostic), output)
    }

    /// `/a/b/File.swift:3:5: error: …`; the same line drawn in the source does not count. A diagnostic without a
    /// location has no file.
    private static func diagnostic(_ line: Substring) -> Diagnostic? {
        for kind in ["error: ", "warning: "] {
            guard let range = firstRange(of: kind, in: line) else { continue }
            let place = line[..<range.lowerBound].split(separator: ":")
            if place.isEmpty { return Diagnostic(file: "", line: 0, text: String(line)) }
            guard place.count >= 3, let number = Int(place[1]), place[0].hasSuffix(".swift") else { return nil }
            let file = place[0].split(separator: "/").last.map(String.init) ?? ""
            return Diagnostic(file: file, line: number, text: String(line[range.lowerBound...]))
        }
        return nil
    }

    private static func firstRange(of text: String, in line: Substring) -> Range<Substring.Index>? {
        line.indices.first { line[$0...].hasPrefix(text) }.map { $0..<line.index($0, offsetBy: text.count) }
    }

    /// Next to the running test bundle.
    static var products: String {
        get throws {
            var buffer = [UInt8](repeating: 0, count: 4096)
            let count = buffer.withUnsafeMutableBytes {
                readlink("/proc/self/exe", $0.baseAddress!.assumingMemoryBound(to: CChar.self), $0.count)
            }
            let bundle = String(decoding: buffer.prefix(max(count, 0)), as: UTF8.self)
            let end = try #require(bundle.lastIndex(of: "/"))
            return String(bundle[..<end])
        }
    }

    /// Both outputs of a command, and its exit status in words.
    static func run(_ command: [String]) throws -> String {
        // "e": other processes that tests start now do not inherit this end.
        let output = try #require(popen(command.map(quoted).joined(separator: " ") + " 2>&1", "re"))
        defer { pclose(output) }
        return String(decoding: Repository.bytes(of: output), as: UTF8.self)
    }

    private static func quoted(_ word: String) -> String {
        "'" + word.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
    }
}
