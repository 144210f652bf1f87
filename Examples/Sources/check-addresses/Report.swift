import AddressChecks
import Glibc
import Reactor

/// Prints results on standard output. If standard error is a terminal, it also shows the progress there, in one line
/// that is erased before anything else is printed.
final class Report {
    private let checks: AddressChecks
    private let showsProgress = isatty(STDERR_FILENO) == 1

    init(of checks: AddressChecks) { self.checks = checks }

    /// Prints the results that can be printed in the order of the addresses, and the progress.
    func update() throws {
        try printLines(checks.takeLines())
        guard showsProgress else { return }
        showProgress("\(checks.checkedCount) of \(checks.count) checked, \(checks.failedCount) failed")
    }

    /// Erases the progress, and prints every result not printed yet.
    func end() throws {
        try printLines(checks.takeAllLines())
        if showsProgress { showProgress("") }
        let missing = checks.count - checks.checkedCount
        if missing > 0 {
            try? write("check-addresses: \(missing) of \(checks.count) were not checked\n", to: STDERR_FILENO)
        }
    }

    private func printLines(_ lines: [String]) throws {
        guard !lines.isEmpty else { return }
        // The terminal may also be standard output.
        if showsProgress { showProgress("") }
        try write(lines.joined(separator: "\n") + "\n", to: STDOUT_FILENO)
    }

    /// Replaces the line. If the terminal fails, only the progress is lost.
    private func showProgress(_ text: String) { try? write("\r\u{1b}[K" + text, to: STDERR_FILENO) }

    /// Not `print`, which ignores a full disk.
    private func write(_ text: String, to descriptor: CInt) throws(SystemError) {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count >= 0 {
                rest = rest.dropFirst(count)
            } else if errno != EINTR {
                throw SystemError(.write, errno, detail: "to descriptor \(descriptor)")
            }
        }
    }
}
