@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

struct UnixSocketTests {
    @Test(arguments: ["1", "2"])
    func aPathBesideTCPIsAnnouncedInTheOrderServedAndGoesWithTheServer(threads: String) throws {
        let folder = Folder()
        let server = try ServerProcess.serving(
            "--threads", threads, "--listen", "127.0.0.1:0", "--listen", "unix:\(folder["echo.sock"])", "--listen",
            "127.0.0.1:0")
        expectEqual(server.addresses.map(\.isUnix), [false, true, false])
        expectEqual(server.addresses[1], folder.address("echo.sock"))
        expect(server.addresses[0] != server.addresses[2])
        let clients = try server.addresses.flatMap { address in try (0..<2).map { _ in try Peer(to: address) } }
        for client in clients { expect(try client.echoes("hello")) }
        for client in clients { try client.leave() }
        expect(try server.terminate().hasPrefix("totals: 0 open, 6 connections (peak 6, 0 failed), 30 bytes, "))
        expect(!folder.has("echo.sock"))
    }

    @Test(arguments: [[SIGTERM], [SIGTERM, SIGINT]]) func thePathOfTheMetricsGoesToo(signals: [CInt]) throws {
        let folder = Folder()
        let server = try ServerProcess.serving("--metrics", "unix:\(folder["metrics.sock"])", "--drain-timeout", "1m")
        let client = try Peer(to: server.address)
        expect(try client.echoes("hello"))
        expect(folder.has("metrics.sock"))
        expectEqual(try server.exposition()["echo_open_connections"], 1)
        server.signal(signals[0])
        try server.awaitDraining()
        if signals.count == 1 { client.end() } else { server.signalAgain(signals[1]) }
        expectEqual(try server.waitForExit(), .code(signals.count == 1 ? 0 : 128 + signals[1]))
        expect(!folder.has("metrics.sock"))
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
