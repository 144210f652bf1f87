import Glibc

/// Lines for people and for whoever has started the server.
enum Output {
    /// Prints a line of which the server does not care whether it arrives. One that cannot leave at once, because whoever
    /// should read them does not, is dropped: otherwise the reader of a log would decide when clients are served.
    static func say(_ line: String) { write(line, to: STDOUT_FILENO) }

    /// The same on standard error.
    static func warn(_ line: String) { write(line, to: STDERR_FILENO) }

    /// Prints a line that others wait for, however long that takes.
    static func announce(_ line: String) { write(line, to: STDOUT_FILENO, waits: true) }

    /// Ends the process after a line on standard error.
    static func fail(_ message: String, _ code: CInt) -> Never {
        write("echo-server: \(message)", to: STDERR_FILENO, waits: true)
        // Not `exit`, which would report each handler that was attached before the failure as one that never runs.
        _exit(code)
    }

    /// In one write(2), so that lines do not mix; a pipe with room has it for one of 4096 bytes. Errors are let go: a closed
    /// pipe or a full disk is no reason to serve nobody, and there is nowhere to tell of it.
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
