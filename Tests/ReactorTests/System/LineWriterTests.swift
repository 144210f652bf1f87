/// Lines written without blocking.
struct LineWriterTests {
    /// Writes without a reader, to a blocking descriptor, as standard error is.
    @Test(arguments: [true, false]) func whatIsFullDropsLinesAndTheNextTellsHowMany(isPipe: Bool) {
        let ends = isPipe ? Ends.pipe() : .sockets()
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

    @Test func aLineIsOneLineAndALongOneIsCutBetweenCharacters() {
        let ends = Ends.pipe()
        LineWriter(ends.far).write("unhandled rejection: a\nb\u{1B}[2J")
        expectEqual(text(from: ends.near), "unhandled rejection: a\\nb\\u{1B}[2J\n")
        LineWriter(ends.far).write(String(repeating: "ä", count: 5000))
        let line = text(from: ends.near)
        expect(line.utf8.count <= 4096 && line.utf8.count > 4080)
        expect(line.hasPrefix("ää") && line.hasSuffix("ä… (10000 bytes)\n"))
        ends.closeNear()
        LineWriter(ends.far).write("to nobody, which the process survives")
    }

    // MARK: Terminals

    /// In a separate process, which the kernel ends if a line blocks.
    @Test(.ownThread) func aTerminalThatNobodyReadsHoldsNoThread() async {
        await #expect(processExitsWith: .success) {
            alarm(30)
            // The kernel reports room, and takes a part of a line: its size depends on the previous output.
            for length in stride(from: 0, to: 2500, by: 125) {
                let terminal = Terminal()
                let writer = LineWriter(terminal.slave)
                writer.write(String(repeating: "-", count: length))
                for _ in 0..<8 { writer.write(String(repeating: "x", count: 4000)) }
                precondition(fcntl(terminal.slave, F_GETFL) & O_NONBLOCK == 0)
                var text = ""
                // The room freed by a read becomes available a moment later.
                while !text.hasSuffix("\nagain\n") {
                    writer.write("again")
                    text += terminal.read()
                }
                precondition(text.contains("xxx") && text.contains(" dropped here, "), text)
            }
        }
    }

    @Test(.ownThread) func aTerminalIsKnownByItsDescriptor() async {
        await #expect(processExitsWith: .success) {
            alarm(30)
            // One that becomes another terminal is followed, as in a program that redirects its standard error later.
            do {
                let (first, second) = (Terminal(), Terminal())
                let fd = dup(first.slave)
                let writer = LineWriter(fd)
                writer.write("one")
                precondition(dup2(second.slave, fd) == fd)
                writer.write("two")
                first.endMaster()
                let ends = Ends.pipe()
                precondition(dup2(ends.far, fd) == fd)
                writer.write("three")
                precondition(second.read(until: "\n") == "two\n")
                precondition(text(from: ends.near) == "three\n")
            }
            // A master is not opened again, which would create another pair.
            do {
                let terminal = Terminal()
                LineWriter(terminal.master).write("to the other side")
                var count: CInt = 0
                precondition(ioctl(terminal.slave, UInt(FIONREAD), &count) == 0 && count == 0)
            }
            // Without a descriptor that is free.
            let terminal = Terminal()
            let writer = LineWriter(terminal.slave)
            var limit = rlimit(rlim_cur: 0, rlim_max: 0)
            precondition(setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
            writer.write("too many open files")
            precondition(terminal.read(until: "\n") == "too many open files\n")
        }
    }
}

/// A terminal and its master, where lines end as they were written.
private final class Terminal {
    private(set) var master: CInt
    let slave: CInt

    init() {
        // TIOCSPTLCK and TIOCGPTN: posix_openpt(3) and the others are hidden from Swift.
        var (locked, number): (CInt, CInt) = (0, -1)
        master = open("/dev/ptmx", O_RDWR | O_NOCTTY)
        precondition(ioctl(master, 0x4004_5431, &locked) == 0 && ioctl(master, 0x8004_5430, &number) == 0)
        slave = open("/dev/pts/\(number)", O_RDWR | O_NOCTTY)
        var settings = termios()
        precondition(slave >= 0 && tcgetattr(slave, &settings) == 0)
        settings.c_oflag &= ~tcflag_t(OPOST)
        precondition(tcsetattr(slave, TCSANOW, &settings) == 0)
        _ = fcntl(master, F_SETFL, O_NONBLOCK)
    }

    func endMaster() { close(master) }

    /// The bytes that have arrived on the other side, after waiting for some.
    func read() -> String {
        var entry = pollfd(fd: master, events: Int16(POLLIN), revents: 0)
        poll(&entry, 1, -1)
        return text(from: master)
    }

    func read(until end: String) -> String {
        var text = ""
        while !text.hasSuffix(end) { text += read() }
        return text
    }
}
