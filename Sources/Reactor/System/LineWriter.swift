import CLinux
import ReactorLibc
import Synchronization

/// Writes lines to a descriptor, usually standard error, without ever waiting for it. A line that the descriptor does
/// not take at once, such as a full pipe or a stopped terminal, is dropped and counted. The next line that is taken
/// begins with the count.
///
/// Any thread may use it. The descriptor's flags are not changed, since other processes may share them.
package final class LineWriter: Sendable {
    private let fd: CInt
    /// For a terminal, a separate open file in non-blocking mode, which no other process shares; otherwise -1.
    private let terminal: CInt
    private let name: String
    private let dropped = Atomic<Int>(0)

    package init(_ fd: CInt, name: String = "standard error") {
        self.fd = fd
        self.name = name
        terminal = clinux_open_terminal(fd)
    }

    deinit { if terminal >= 0 { close(terminal) } }

    /// Standard error. When the process ends by exit(3), the last count of dropped lines is written, if there is room
    /// then.
    ///
    /// Made with the first loop that waits: a terminal needs a descriptor, and a line may say that there is none.
    package static let standardError: LineWriter = {
        atexit { LineWriter.standardError.reportDropped() }
        return LineWriter(STDERR_FILENO)
    }()

    /// The length in bytes up to which a pipe takes a line whole or not at all (PIPE_BUF). A longer line is cut.
    private static var longestLine: Int { 4096 }

    /// Writes one line with one call, so that the lines of several threads do not mix. Control characters are escaped.
    package func write(_ line: String) {
        let line = line.inOneLine
        let before = dropped.exchange(0, ordering: .relaxed)
        let note = before > 0 ? note(before) : ""
        if !transmit(note + Self.cut(line, to: Self.longestLine - note.utf8.count)) {
            dropped.add(before + 1, ordering: .relaxed)
        }
    }

    private func reportDropped() {
        let before = dropped.exchange(0, ordering: .relaxed)
        if before > 0 { _ = transmit(note(before)) }
    }

    private func note(_ count: Int) -> String {
        "swift-reactor: \(count) line\(count == 1 ? " was" : "s were") dropped here, since \(name) did not accept them\n"
    }

    private static func cut(_ line: String, to length: Int) -> String {
        let count = line.utf8.count
        if count < length { return line + "\n" }
        let mark = "… (\(count) bytes)\n"
        var end = line.utf8.index(line.startIndex, offsetBy: length - mark.utf8.count)
        // The cut must not split a character.
        while end.samePosition(in: line.unicodeScalars) == nil { end = line.utf8.index(before: end) }
        return line[..<end] + mark
    }

    /// Returns whether the descriptor has taken all bytes.
    private func transmit(_ text: String) -> Bool {
        var text = text
        return text.withUTF8 { clinux_write_at_once(fd, terminal, $0.baseAddress, $0.count) == $0.count }
    }
}
