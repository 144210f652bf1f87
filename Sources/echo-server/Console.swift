import ReactorLibc
import Reactor

/// Lines for users and for the process that has started the server.
enum Console {
    private static let output = LineWriter(STDOUT_FILENO, name: "standard output")

    /// Prints a line that may be lost. If it cannot be written at once, because no process reads the output, it is
    /// dropped: otherwise the reader of a log would decide when clients are served.
    static func say(_ line: String) { output.write(line) }

    /// Prints a line that may be lost, on standard error.
    static func warn(_ line: String) { LineWriter.standardError.write(line) }

    /// Prints a line that another process waits for, however long that takes, with one write(2), so that lines do not
    /// mix. Errors are ignored: a closed pipe or a full disk is no reason to stop serving, and there is nowhere to
    /// report it.
    static func announce(_ line: String) {
        var rest = Array("\(line)\n".utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { write(STDOUT_FILENO, $0.baseAddress, $0.count) }
            if count < 0 && errno == EINTR { continue }
            if count <= 0 { return }
            rest = rest.dropFirst(count)
        }
    }

    /// Prints a line on standard error and ends the process.
    static func fail(_ message: String, _ code: CInt) -> Never {
        warn("echo-server: \(message)")
        // Not `exit`, which would report each handler that was attached before the failure as one that never runs.
        _exit(code)
    }
}
