import Glibc

/// Lines for users and for the process that has started the server.
enum Console {
    /// Prints a line that may be lost. If it cannot be written at once, because no process reads the output, it is
    /// dropped: otherwise the reader of a log would decide when clients are served.
    static func say(_ line: String) { write(line, to: STDOUT_FILENO) }

    /// Prints a line that may be lost, on standard error.
    static func warn(_ line: String) { write(line, to: STDERR_FILENO) }

    /// Prints a line that another process waits for, however long that takes.
    static func announce(_ line: String) { write(line, to: STDOUT_FILENO, waits: true) }

    /// Prints a line on standard error and ends the process.
    static func fail(_ message: String, _ code: CInt) -> Never {
        write("echo-server: \(message)", to: STDERR_FILENO, waits: true)
        // Not `exit`, which would report each handler that was attached before the failure as one that never runs.
        _exit(code)
    }

    /// Writes a line with one write(2), so that lines do not mix; a pipe that is ready takes a line of up to 4096 bytes
    /// whole. Errors are ignored: a closed pipe or a full disk is no reason to stop serving, and there is no place to
    /// report it.
    private static func write(_ line: String, to fd: CInt, waits: Bool = false) {
        var entry = pollfd(fd: fd, events: Int16(POLLOUT), revents: 0)
        if !waits && poll(&entry, 1, 0) != 1 { return }
        var rest = Array("\(line)\n".utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(fd, $0.baseAddress, $0.count) }
            if count < 0 && errno == EINTR { continue }
            if count <= 0 { return }
            rest = rest.dropFirst(count)
        }
    }
}
