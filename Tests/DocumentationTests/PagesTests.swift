import Glibc
import TestSupport
import Testing

/// The Swift blocks of the documentation compile without warnings, and blocks with an `assert` pass it: written by
/// `Tests/Fixtures/snippets.py`, compiled against the modules of this build, run as a program.
@Suite(.ownThread, .enabled(if: hasPython, "python3 writes the blocks as files"))
struct PagesTests {
    /// The blocks stand for users' code: none may take the type checker a second. The slowest takes some 40 ms.
    private static let limits = ["function-bodies", "expression-type-checking"]
        .flatMap { ["-Xfrontend", "-warn-long-\($0)=1000"] }

    private let pages: Pages

    init() throws { pages = try Pages() }

    @Test func blocksCompileAndHoldWhatTheySay() throws {
        let files = try pages.files(of: "Pages", with: "Tests/Fixtures/Pages")
        expect(files.count > 20)
        let program = pages.folder / "program"
        let said = try Compiler.program(
            program, of: files, module: "Pages",
            libraries: [
                "CLinux", "PromiseKitNames", "Promises", "Reactor", "ReactorDispatch", "ReactorHTTP", "ReactorIO",
                "SimulatedNetwork",
            ], Self.limits)
        try #require(said == "")
        let output = try Compiler.run(["sh", "-c", "timeout 120 \"$0\" && echo ended well", program])
        let lines = output.split(separator: "\n").filter { !$0.hasSuffix(" started.") }
        expect(lines.last == "ended well", lines.joined(separator: "\n"))
    }

    @Test func blocksAboutHTTPCompile() throws {
        let files = try pages.files(of: "HTTP", with: "Tests/Fixtures/HTTPPages")
        expectEqual(try Compiler.diagnostics(of: files, module: "HTTPPages", Self.limits).output, "")
    }

    @Test func blocksSeeWhatAnotherPackageSees() throws {
        let file = pages.folder / "Insider.swift"
        let text = "import ReactorIO\nfunc kept(of connection: Connection) -> Int { connection.bufferedByteCount }\n"
        _ = try Compiler.run(["sh", "-c", "printf %s \"$1\" >\"$0\"", file, text])
        let said = try Compiler.diagnostics(of: [file], module: "Insider", until: "-typecheck")
        expect(said.all.first?.text.contains("is inaccessible due to 'package' protection level") == true, said.output)
    }

    /// Inline code, tables and indented code, which no compiler sees.
    @Test func namesInTheTextExist() throws {
        let script = "\(Repository.root)/Tests/Fixtures/names.py"
        expectEqual(try Compiler.run(["python3", script, Compiler.products]), "")
    }

    @Test func manifestsCompile() throws {
        for file in try pages.files(of: "Manifests") {
            expectEqual(try Compiler.diagnostics(ofManifest: file).output, "")
        }
    }
}

/// The blocks as `Tests/Fixtures/snippets.py` writes them, in a folder that is removed with this object.
private final class Pages {
    let folder = Folder()

    init() throws {
        let said = try Compiler.run(["python3", "\(Repository.root)/Tests/Fixtures/snippets.py", folder.path])
        try #require(said == "")
    }

    deinit { _ = try? Compiler.run(["rm", "-r", folder.path]) }

    /// The files below `name`, and those compiled with them.
    func files(of name: String, with support: String? = nil) throws -> [String] {
        let files = try Repository.names(in: folder / name).map { folder / "\(name)/\($0)" }
        try #require(!files.isEmpty)
        return try files + Repository.absolute(support.map(Repository.files(in:)) ?? [])
    }
}

private let hasPython = (try? Compiler.run(["python3", "--version"]))?.hasPrefix("Python 3") ?? false
