@testable import PromisesTestSupport

struct UnixSocketTests {
    @Test func anAbstractName() throws {
        let name = "unix:@echo-server-\(getpid())-\(UInt64.random(in: 0 ... .max))"
        let server = try ServerProcess.serving("--listen", name)
        expectEqual(server.address.description, name)
        expect(try Peer(to: server.address).echoes("hello"))
        _ = try server.terminate()
    }

    @Test(arguments: ["1", "2"]) func aPathBesideTCPIsServedAndGoesWithTheServer(threads: String) throws {
        let folder = Folder()
        let server = try ServerProcess.serving(
            "--threads", threads, "--listen", "unix:\(folder["echo.sock"])", "--listen", "127.0.0.1:0")
        expectEqual(server.addresses.map(\.isUnix), [true, false])
        expectEqual(server.addresses[0], folder.address("echo.sock"))
        let clients = try server.addresses.flatMap { address in try (0..<2).map { _ in try Peer(to: address) } }
        for client in clients { expect(try client.echoes("hello")) }
        for client in clients { try client.leave() }
        expect(try server.terminate().hasPrefix("totals: 0 open, 4 connections (peak 4, 0 failed), 20 bytes, "))
        expect(!folder.has("echo.sock"))
    }

    @Test func whatAKilledServerLeavesBehindIsReplaced() throws {
        let folder = Folder()
        let first = try ServerProcess.serving("--listen", "unix:\(folder["echo.sock"])")
        first.signal(SIGKILL)
        expectEqual(try first.waitForExit(), .signal(SIGKILL))
        expect(folder.has("echo.sock"))
        let second = try ServerProcess.serving("--listen", "unix:\(folder["echo.sock"])")
        expect(try Peer(to: second.address).echoes("hello"))
        _ = try second.terminate()
        expect(!folder.has("echo.sock"))
    }

    @Test func aPathThatIsTakenIsRefused() throws {
        let folder = Folder()
        let server = try ServerProcess.serving("--listen", "unix:\(folder["echo.sock"])")
        let second = try ServerProcess(["--listen", "unix:\(folder["echo.sock"])"])
        expect(try second.readError().hasSuffix("echo.sock: Address already in use (EADDRINUSE)"))
        expectEqual(try second.waitForExit(), .code(EX_UNAVAILABLE))
        expect(try Peer(to: server.address).echoes("undisturbed"))
        _ = try server.terminate()
    }

    @Test func aFileOfOthersIsLeftAlone() throws {
        let folder = Folder()
        close(open(folder["precious"], O_CREAT | O_WRONLY | O_CLOEXEC, 0o600))
        let server = try ServerProcess(["--listen", "unix:\(folder["precious"])"])
        expectEqual(try server.waitForExit(), .code(EX_UNAVAILABLE))
        expect(folder.has("precious"))
    }

    @Test func drainingTakesThePathAwayAndLetsConnectionsGoOn() throws {
        let folder = Folder()
        let server = try ServerProcess.serving("--listen", "unix:\(folder["echo.sock"])", "--drain-timeout", "1m")
        // An idle one would be closed.
        let client = try Peer.stalled(at: server.address)
        server.signal(SIGTERM)
        try server.awaitDraining()
        expect(!folder.has("echo.sock"))
        expectEqual(client.failureOfReading(), nil)
        expectEqual(try server.waitForExit(), .code(0))
    }

    @Test(arguments: [[SIGTERM], [SIGTERM, SIGINT]]) func thePathOfTheMetricsGoesToo(signals: [CInt]) throws {
        let folder = Folder()
        let server = try ServerProcess.serving(
            "--metrics", "unix:\(folder["metrics.sock"])", "--drain-timeout", "1m")
        let client = try Peer(to: server.address)
        expect(try client.echoes("hello"))
        expect(folder.has("metrics.sock"))
        expectEqual(try server.exposition()["echo_open_connections"], 1)
        server.signal(signals[0])
        try server.awaitDraining()
        if signals.count == 1 { client.end() } else { server.signalAgain(signals[1]) }
        #expect(try server.waitForExit() == .code(signals.count == 1 ? 0 : 128 + signals[1]))
        #expect(!folder.has("metrics.sock"))
    }

    @Test(.enabled(if: mayHaveDescriptors(20_000), "the hard limit of descriptors is below 20,000"))
    func aServerThatCannotBeginLeavesNoPathBehind() throws {
        let folder = Folder()
        let taken = try OwnSocket(SOCK_STREAM, .loopback(port: 0))
        for option in ["--listen", "--metrics"] {
            let server = try ServerProcess(["--listen", "unix:\(folder["echo.sock"])", option, "\(taken.address)"])
            expect(try server.readError().hasPrefix("echo-server: bind \(taken.address): Address already in use"))
            expectEqual(try server.waitForExit(), .code(EX_UNAVAILABLE))
            expect(!folder.has("echo.sock"))
        }
    }
}
