@testable import PromisesTestSupport
@testable import ReactorIOTestSupport
@testable import echo_server

/// The protocol of systemd, played by the shell and by sockets of the test.
struct ServiceManagerTests {
    private let activated = "export LISTEN_PID=$$ LISTEN_FDS=1"

    // MARK: Sockets that are passed

    @Test(arguments: [false, true]) func aPassedSocketIsServedAloneAndItsPathStays(isUnix: Bool) throws {
        let folder = Folder()
        let socket = try OwnSocket(SOCK_STREAM, isUnix ? folder.address("passed.sock") : .loopback(port: 0))
        // Clients that connected before the server started are served too.
        let early = try Peer(to: socket.address, sending: "x")
        let server = try ServerProcess.serving("--drain-timeout", "0", limits: activated, passing: socket.fd)
        expectEqual(server.addresses, [socket.address])
        expectEqual(try early.receive(), [0x78])
        expect(try Peer(to: socket.address).echoes("hello"))
        let output = try server.terminate()
        expect(output.contains(" 2 connections "))
        expectEqual(output.filter { $0 == "\n" }.count, 1, "it listens elsewhere too")
        expectEqual(folder.has("passed.sock"), isUnix)
    }

    @Test func aRestartRefusesNoClient() throws {
        let socket = try OwnSocket(SOCK_STREAM, .loopback(port: 0))
        let first = try ServerProcess.serving(
            "--max-connections", "1", "--drain-timeout", "1m", limits: activated, passing: socket.fd)
        let old = try Peer(to: socket.address)
        expect(try old.echoes("first"))
        let next = try Peer(to: socket.address)
        try next.send([0x78])
        // After that the server knows that a client waits and that there is no room.
        expect(try old.echoes("again"))
        // The server closes idle connections when it drains, and then accepts none. If the client ended first, the
        // server might accept the next one before it sees the signal.
        try first.terminate {
            expectEqual(try old.receive(), [])
            old.end()
        }
        let late = try Peer(to: socket.address)
        expect(socket.hasClients)
        let second = try ServerProcess.serving(limits: activated, passing: socket.fd)
        expectEqual(try next.receive(), [0x78])
        expect(try late.echoes("second"))
        _ = (next.end(), late.end())
        expect(try second.terminate().contains(" 2 connections "))
    }

    @Test func aSocketForDatagramsIsRefused() throws {
        let socket = try OwnSocket(SOCK_DGRAM, .loopback(port: 0))
        let server = try ServerProcess([], limits: activated, passing: socket.fd)
        expect(try server.readError().hasPrefix("echo-server: "))
        expectEqual(try server.waitForExit(), .code(EX_OSERR))
    }

    /// A socket that somebody has shut down cannot accept any more.
    @Test(arguments: ["1", "2"]) func aListenerThatBreaksEndsItWithOneLine(threads: String) throws {
        let socket = try OwnSocket(SOCK_STREAM, .loopback(port: 0))
        let server = try ServerProcess.serving("--threads", threads, limits: activated, passing: socket.fd)
        shutdown(socket.fd, CInt(SHUT_RDWR))
        let errors = try server.readToEnd().errors
        expectEqual(errors, "echo-server: accept4 \(socket.address): Invalid argument (EINVAL)\n")
        expectEqual(try server.waitForExit(), .code(EX_OSERR))
    }

    // MARK: What it is told

    @Test func itHearsOfTheBeginningAndTheEnd() throws {
        let folder = Folder()
        let manager = try OwnSocket(SOCK_DGRAM, folder.address("notify"))
        let server = try ServerProcess.serving(
            "--drain-timeout", "7m", limits: "export NOTIFY_SOCKET=\(folder["notify"])")
        expectEqual(manager.receive(), "READY=1\nSTATUS=listening on \(server.address)")
        let client = try Peer(to: server.address)
        expect(try client.echoes("hello"))
        expectEqual(manager.receive(within: 0), nil)
        try server.terminate {
            expectEqual(manager.receive(), "STOPPING=1\nSTATUS=draining\nEXTEND_TIMEOUT_USEC=425000000")
            client.end()
        }
        expectEqual(manager.receive(within: 0), nil)
    }

    @Test func theWatchdogHearsItAlsoWhileItDrains() throws {
        let folder = Folder()
        let manager = try OwnSocket(SOCK_DGRAM, folder.address("notify"))
        let server = try ServerProcess.serving(
            "--drain-timeout", "1m",
            limits: "export NOTIFY_SOCKET=\(folder["notify"]) WATCHDOG_USEC=20000 WATCHDOG_PID=$$")
        expectEqual(manager.receive()?.hasPrefix("READY=1\n"), true)
        for _ in 0..<3 { expectEqual(manager.receive(), "WATCHDOG=1") }
        let client = try Peer.stalled(at: server)
        try server.terminate {
            var said = manager.receive()
            while said == "WATCHDOG=1" { said = manager.receive() }
            expectEqual(said?.hasPrefix("STOPPING=1\n"), true)
            for _ in 0..<3 { expectEqual(manager.receive(), "WATCHDOG=1") }
            client.end()
            expectEqual(client.failureOfReading(), nil)
        }
    }

    /// As during boot, when every service reports. A lost report would never be repeated.
    @Test func aManagerWhoseQueueIsFullHearsItLater() throws {
        let folder = Folder()
        let manager = try OwnSocket(SOCK_DGRAM, folder.address("notify"))
        let before = manager.fill()
        expect(before > 0)
        let server = try ServerProcess.serving(
            "--drain-timeout", "0", limits: "export NOTIFY_SOCKET=\(folder["notify"]) WATCHDOG_USEC=20000")
        // It serves meanwhile.
        expect(try Peer(to: server.address).echoes("hello"))
        for _ in 0..<before { expectEqual(manager.receive(), "x") }
        expectEqual(manager.receive(), "READY=1\nSTATUS=listening on \(server.address)")
        expectEqual(manager.receive(), "WATCHDOG=1")
        // Nothing on standard error.
        try server.terminate()
    }

    // In a separate process, whose environment it changes.
    @Test(.ownThread) func aManagerThatHearsNothingForAMinuteIsGivenUp() async {
        await #expect(processExitsWith: .success) {
            let folder = Folder()
            let manager = try OwnSocket(SOCK_DGRAM, folder.address("notify"))
            precondition(manager.fill() > 0)
            setenv("NOTIFY_SOCKET", folder["notify"], 1)
            withExtendedLifetime((folder, manager)) { expectOneWarningAfterAMinute() }
        }
    }

    /// Clients may exhaust the descriptors of a server; its manager must not take that for a failure.
    @Test(.disabled(if: isSanitized)) func theWatchdogIsFedWithoutDescriptors() throws {
        let folder = Folder()
        let manager = try OwnSocket(SOCK_DGRAM, folder.address("notify"))
        let server = try ServerProcess.serving(
            "--drain-timeout", "0", limits: "export NOTIFY_SOCKET=\(folder["notify"]) WATCHDOG_USEC=20000")
        expectEqual(manager.receive()?.hasPrefix("READY=1\n"), true)
        server.descriptorLimit = 3
        for _ in 0..<5 { expectEqual(manager.receive(), "WATCHDOG=1") }
        server.signal(SIGTERM)
        expect(try !server.readToEnd().errors.contains("cannot notify"))
        expectEqual(try server.waitForExit(), .code(0))
    }

    @Test(arguments: [("nonsense", "(EINVAL)"), ("/nowhere/notify", "(ENOENT)")])
    func aManagerThatCannotBeToldIsReportedOnce(socket: String, error: String) throws {
        let server = try ServerProcess.serving(limits: "export NOTIFY_SOCKET=\(socket) WATCHDOG_USEC=1000")
        let line = try server.readError()
        expect(line.hasPrefix("echo-server: cannot notify the service manager: ") && line.contains(error))
        let client = try Peer(to: server.address)
        for number in 0..<50 { expect(try client.echoes("message \(number)")) }
        try client.leave()
        expect(try server.terminate().hasPrefix("totals: "))
    }
}

private func expectOneWarningAfterAMinute() {
    withVirtualTime { (_: VirtualClock) in
        var warnings: [String] = []
        ServiceNotifier(on: .current) { warnings.append($0) }.notifyReady([]) { .value }
        hang(after(.seconds(55)))
        precondition(warnings.isEmpty)
        hang(after(.seconds(10)))
        precondition(warnings.count == 1 && warnings[0].contains("(EAGAIN)"), "\(warnings)")
    }
}
