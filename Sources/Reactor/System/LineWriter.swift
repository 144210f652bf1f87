import CLinux
import ReactorLibc
import Synchronization

/// Writes lines to a descriptor, usually standard error, without waiting. Drops a line that does not fit at once,
/// because a pipe is full or a terminal is stopped. The next line begins with the number of dropped lines.
///
/// Any thread may use it. It does not change the descriptor's flags, because other processes may share them.
package final class LineWriter: Sendable {
    private let fd: CInt
    /// The terminal, opened anew in non-blocking mode and so not shared; -1 without a terminal.
    private let terminal: CInt
    private let name: String
    private let dropped = Atomic<Int>(0)

    package init(_ fd: CInt, name: String = "standard error") {
        self.fd = fd
        self.name = name
        terminal = clinux_open_terminal(fd)
    }

    deinit { if terminal >= 0 { close(terminal) } }

    /// Standard error. exit(3) writes the last count of dropped lines if there is room.
    ///
    /// Created with the first waiting loop, since a terminal needs a descriptor, and a later line may report that there
    /// is none left.
    package static let standardError: LineWriter = {
        atexit { LineWriter.standardError.reportDropped() }
        return LineWriter(STDERR_FILENO)
    }()

    /// The bytes that a pipe takes whole or not at all (PIPE_BUF). Longer lines are cut.
    private static var longestLine: Int { 4096 }

    /// Writes one line in one call, so lines from several threads do not mix. Escapes control characters.
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
        // Keeps the last character whole.
        while end.samePosition(in: line.unicodeScalars) == nil { end = line.utf8.index(before: end) }
        return line[..<end] + mark
    }

    /// Returns true if all bytes were taken.
    private func transmit(_ text: String) -> Bool {
        var text = text
        return text.withUTF8 { clinux_write_at_once(fd, terminal, $0.baseAddress, $0.count) == $0.count }
    }
}
