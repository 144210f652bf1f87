import Glibc
import Reactor
import TestSupport
import Testing

/// Lines that are never waited for.
@Suite struct LineWriterTests {
    private func text(from fd: CInt) -> String {
        var buffer = [UInt8](repeating: 0, count: 1 << 20)
        let count = read(fd, &buffer, buffer.count)
        return String(decoding: buffer[..<max(count, 0)], as: UTF8.self)
    }

    /// Writes without a reader, to a descriptor that is blocking as standard error is.
    private func expectDrops(_ ends: Ends) {
        fill(ends.far)
        _ = fcntl(ends.far, F_SETFL, 0)
        let writer = LineWriter(ends.far)
        for number in 0..<3 { writer.write("line \(number)") }
        expectEqual(fcntl(ends.far, F_GETFL) & O_NONBLOCK, 0)
        while take(from: ends.near) > 0 {}
        writer.write("line 3")
        writer.write("line 4")
        let note = "swift-reactor: 3 lines were dropped here, since standard error did not accept them"
        expectEqual(text(from: ends.near), "\(note)\nline 3\nline 4\n")
    }

    @Test func aFullPipeDropsLinesAndTheNextTellsHowMany() { expectDrops(.pipe()) }

    @Test func soDoesASocket() { expectDrops(.sockets()) }

    @Test func withoutAReaderTheProcessLives() {
        let ends = Ends.pipe()
        ends.closeNear()
        LineWriter(ends.far).write("to nobody")
    }

    @Test func aLongLineIsCutBetweenCharacters() {
        let ends = Ends.pipe()
        LineWriter(ends.far).write(String(repeating: "ä", count: 5000))
        let line = text(from: ends.near)
        expect(line.utf8.count <= 4096 && line.utf8.count > 4080)
        expect(line.hasPrefix("ää") && line.hasSuffix("ä… (10000 bytes)\n"))
    }
}
