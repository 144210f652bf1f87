// Made by .ci/snippets.py from docs/guides/child-processes.md; do not edit.
// swift-format-ignore-file
import Promises
import Reactor

// docs/guides/child-processes.md: Child processes
extension Snippets {
    static func childProcesses1() throws {
        let sorted = ChildProcess.run("sort", ["-r"], input: Array("a\nb\n".utf8))
        let output = try hang(sorted)
        assert(output.status.isSuccess && output.text == "b\na\n")
        _ = sorted
        _ = output
    }
}

// docs/guides/child-processes.md: Child processes
extension Snippets {
    static func childProcesses2() throws {
        let child = try ChildProcess.spawn(
            "sh", arguments: ["-c", "while read line; do echo \"<$line>\"; done; exit 3"],
            standardInput: .pipe, standardOutput: .pipe)
        let (input, output) = (child.standardInput!, child.standardOutput!)
        var lines: [String] = []
        let read = output.forEachLine { line in lines.append(line) }
        let written = input.write("a\nb\n").ensure { input.close() }
        try hang(when(fulfilled: written, read))
        let status = hang(child.exit)
        assert(lines == ["<a>", "<b>"] && status == .exited(3))
        _ = child
        _ = input
        _ = output
        _ = lines
        _ = read
        _ = written
        _ = status
    }
}
