import ReactorLibc
import Reactor

/// Lines for users and for the process that started the server.
enum Console {
    private static let output = LineWriter(STDOUT_FILENO, name: "standard output")

    /// Prints a line, or drops it if the output has no room: a slow log reader must not delay clients.
    static func say(_ line: String) { output.write(line) }

    /// Prints a line on standard error, or drops it.
    static func warn(_ line: String) { LineWriter.standardError.write(line) }

    /// Prints a line that another process waits for, blocking if needed, with one write(2), so lines do not mix.
    /// Ignores errors: a closed pipe or full disk is no reason to stop serving, and cannot be reported.
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
        // `exit` would report each earlier handler as one that never runs.
        _exit(code)
    }
}
