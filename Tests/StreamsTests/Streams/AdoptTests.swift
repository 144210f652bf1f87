@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

struct AdoptTests {
    /// Adopts, and expects a refusal that leaves the descriptor unchanged.
    private func refused(_ fd: CInt, _ net: Network, _ place: SourceLocation = #_sourceLocation) -> SystemError? {
        let flags = fcntl(fd, F_GETFL)
        net.ledger.adopt(fd)
        defer {
            net.ledger.disown(fd)
            #expect(fcntl(fd, F_GETFL) == flags, "the descriptor is not as it was", sourceLocation: place)
            close(fd)
        }
        do {
            _ = try Connection(adopting: fd)
            return nil
        } catch { return error }
    }

    @Test(.listener) func aTCPSocketKnowsItsPeer() throws {
        let fd = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        let result = listener.localAddress.withSocketAddress { Glibc.connect(fd, $0, $1) }
        expectEqual(result, 0)
        let server = try net.accept(from: listener)
        net.ledger.adopt(fd)
        let client = try Connection(adopting: fd)
        expect(fcntl(fd, F_GETFL) & O_NONBLOCK != 0)
        expectEqual(fcntl(fd, F_GETFD), FD_CLOEXEC)
        expectEqual(client.peerAddress, listener.localAddress)
        expectEqual(client.localAddress, server.peerAddress)
        try hang(client.write("x"), timeout: patience)
        expectEqual(try hang(server.receive(), timeout: patience), [0x78])
        client.abort()
        expectEqual(try hang(server.read(), timeout: patience), failed(ECONNRESET))
        listener.close()
    }

    @Test(.network) func theEndsOfAPipeGoOneWay() throws {
        var ends: [CInt] = [-1, -1]
        expectEqual(Glibc.pipe(&ends), 0)
        for end in ends { net.ledger.adopt(end) }
        let reader = try Connection(adopting: ends[0])
        let writer = try Connection(adopting: ends[1])
        expectEqual(code(reader.write("x")), EBADF)
        expectEqual(writer.read().settledValue, .failed(SystemError(.read, EBADF)))
        try hang(writer.write("through"), timeout: patience)
        expectEqual(try hang(reader.receive(), timeout: patience), Array("through".utf8))
    }

    @Test(.network) func aTerminalGoesBothWays() throws {
        let master = open("/dev/ptmx", O_RDWR | O_NOCTTY)
        // unlockpt(3) and ptsname(3), which Swift's Glibc module omits.
        var (lock, number) = (CInt(0), CInt(-1))
        expectEqual(ioctl(master, 0x4004_5431, &lock), 0)
        expectEqual(ioctl(master, 0x8004_5430, &number), 0)
        let terminal = open("/dev/pts/\(number)", O_RDWR | O_NOCTTY)
        var settings = termios()
        tcgetattr(terminal, &settings)
        cfmakeraw(&settings)
        tcsetattr(terminal, TCSANOW, &settings)
        net.ledger.adopt(terminal)
        let connection = try Connection(adopting: terminal)
        expectEqual(Glibc.write(master, "typed", 5), 5)
        expectEqual(try hang(connection.receive(), timeout: patience), Array("typed".utf8))
        try hang(connection.write("shown"), timeout: patience)
        var buffer = [UInt8](repeating: 0, count: 10)
        expectEqual(Glibc.read(master, &buffer, 10), 5)
        expectEqual(code(connection.shutdownWrite()), ENOTSOCK)
        hang(connection.close())
        close(master)
    }

    @Test(.network) func whatIsNoStreamIsRefusedAndStaysTheCallers() throws {
        let invalid = SystemError(.fileStatus, EINVAL)
        let file = open("/proc/self/exe", O_RDONLY)
        expectEqual(refused(file, net), invalid)
        expectEqual(refused(open("/", O_RDONLY), net), invalid)
        expectEqual(refused(open("/dev/null", O_RDWR), net), invalid)
        expectEqual(refused(socket(AF_INET, CInt(SOCK_DGRAM.rawValue), 0), net), invalid)
        let listening = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        expectEqual(Glibc.listen(listening, 1), 0)
        let error = try #require(refused(listening, net))
        expectEqual(error, invalid)
        expectEqual(error.detail, "descriptor \(listening) is a listening socket")
        #expect(throws: SystemError(.fileStatus, EBADF)) { try Connection(adopting: -1) }
        // /dev/null was passed to the loop's epoll.
        expect(!net.loop.isAlive)
    }

    /// A descriptor has one user at a time.
    @Test(.network) func whatIsWatchedIsNotAdoptedAndTheOtherWayRound() throws {
        let exists = SystemError(.epollControl, EEXIST)
        var ends: [CInt] = [-1, -1]
        expectEqual(Glibc.pipe(&ends), 0)
        net.ledger.adopt(ends[0])
        var heard = 0
        let watch = try net.loop.watch(ends[0], for: .reading) { _ in
            var byte: UInt8 = 0
            heard += Glibc.read(ends[0], &byte, 1)
        }
        #expect(throws: exists) { _ = try Connection(adopting: ends[0]) }
        expectEqual(fcntl(ends[0], F_GETFL) & O_NONBLOCK, 0)
        expectEqual(Glibc.write(ends[1], "1", 1), 1)
        _ = try net.loop.run { heard == 1 }
        watch.cancel()

        let reader = try Connection(adopting: ends[0])
        let read = reader.receive()
        #expect(throws: exists) { _ = try net.loop.watch(ends[0], for: .reading) { _ in } }
        #expect(throws: exists) { _ = try net.loop.watch(ends[0], for: .writing) { _ in } }
        #expect(throws: exists) { _ = try Connection(adopting: ends[0]) }
        expectEqual(Glibc.write(ends[1], "2", 1), 1)
        expectEqual(try hang(read, timeout: patience), Array("2".utf8))
        hang(reader.close())

        let listening = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        expectEqual(Glibc.listen(listening, 1), 0)
        net.ledger.adopt(listening)
        let other = try net.loop.watch(listening, for: .reading) { _ in }
        #expect(throws: exists) { _ = try Listener(adopting: listening) }
        expect(other.isActive)
        other.cancel()
        let listener = try Listener(adopting: listening)
        listener.accept().ignoringErrors()
        #expect(throws: exists) { _ = try net.loop.watch(listening, for: .reading) { _ in } }
        #expect(throws: exists) { _ = try Listener(adopting: listening) }
        listener.close()
        close(ends[1])
    }

    /// Its former user has closed it without telling the loop.
    @Test(.network) func aNumberThatWasClosedIsFree() throws {
        var (ends, others): ([CInt], [CInt]) = ([-1, -1], [-1, -1])
        expectEqual(Glibc.pipe(&ends), 0)
        expectEqual(Glibc.pipe(&others), 0)
        net.ledger.adopt(ends[0])
        let watch = try net.loop.watch(ends[0], for: .reading) { _ in Issue.record("the descriptor is closed") }
        // Closes the descriptor and reuses its number atomically, so that no other thread can take it.
        expectEqual(dup2(others[0], ends[0]), ends[0])
        let first = try Connection(adopting: ends[0])
        expect(!watch.isActive)
        let lost = first.receive()
        let replacement = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
        expectEqual(dup2(replacement, ends[0]), ends[0])
        try net.loop.watch(ends[0], for: .reading) { _ in }.cancel()
        lost.cancel()
        hang(first.close())
        for fd in [ends[1], others[0], others[1], replacement] { close(fd) }
    }

    @Test(.network) func aDescriptorThatCannotBeMadeIsReported() throws {
        net.kernel.pipe = { _ in -Int(EMFILE) }
        net.kernel.socketPair = { _ in -Int(ENFILE) }
        #expect(throws: SystemError(.pipe, EMFILE)) { try Connection.pipe() }
        #expect(throws: SystemError(.socketPair, ENFILE)) { try Connection.pair() }
    }
}
