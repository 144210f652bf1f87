@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// With one thread, which also accepts, and with several.
@Suite(.ownThread) struct ShutdownTests {
    @Test(arguments: ["1", "2"]) func whatWasAcceptedIsEchoedToTheLastByte(threads: String) throws {
        let server = try ServerProcess.serving("--threads", threads)
        let clients = try (0..<10).map { _ in try Peer(to: server.address) }
        // No more than the kernel takes from a client at once.
        let bytes = randomBytes(30_000)
        for client in clients { try client.send(bytes) }
        let totals = try server.terminate {
            for client in clients {
                expectEqual(try client.readToEnd(), bytes)
                client.end()
            }
        }
        // A slow server accepts the last clients after the first ones have ended.
        expect(totals.hasPrefix("totals: 0 open, 10 connections (peak "))
        expect(totals.contains(", 0 failed), 300000 bytes, "))
    }

    /// Nor does a hang-up of its terminal: there is nothing to reload.
    @Test func aHangUpSignalEndsNothing() throws {
        let server = try ServerProcess.serving("--drain-timeout", "1m")
        let client = try Peer.stalled(at: server)
        server.signal(SIGHUP)
        expect(try Peer(to: server.address).echoes("hello"))
        try server.terminate {
            try server.awaitDraining()
            server.signal(SIGHUP)
            client.end()
            expectEqual(client.failureOfReading(), nil)
        }
    }

    @Test(arguments: [("1", SIGTERM, 4), ("2", SIGINT, 4), ("1", SIGINT, 0), ("4", SIGTERM, 0)])
    func idleClientsAreEndedAtOnceAndSoIsTheServer(threads: String, signal: CInt, count: Int) throws {
        let server = try ServerProcess.serving("--threads", threads, "--drain-timeout", "1m")
        let clients = try (0..<count).map { _ in try Peer(to: server.address) }
        for client in clients { expect(try client.echoes("hello")) }
        let totals = try server.terminate(by: signal) {
            for client in clients {
                expectEqual(try client.receive(), [])
                client.end()
            }
        }
        let expected = "totals: 0 open, \(count) connections (peak \(count), 0 failed), \(count * 5) bytes, "
        expect(totals.hasPrefix(expected), totals)
    }

    @Test(arguments: [("1", SIGTERM, SIGTERM), ("1", SIGINT, SIGINT), ("2", SIGTERM, SIGINT)])
    func theSecondSignalEndsItAtOnce(threads: String, first: CInt, second: CInt) throws {
        let server = try ServerProcess.serving(
            "--threads", threads, "--drain-timeout", "1m", "--metrics", "127.0.0.1:0")
        let clients = try (0..<2).map { _ in try Peer.stalled(at: server) }
        defer { withExtendedLifetime(clients) {} }
        server.signal(first)
        try server.awaitDraining()
        for client in clients { expect(client.waits(for: POLLIN, 0)) }
        expectEqual(try server.exposition()["echo_draining"], 1)
        server.signalAgain(second)
        expectEqual(try server.waitForExit(), .code(128 + second))
    }

    @Test(arguments: zip(["0", "100ms"], ["2", "1"]))
    func theDrainTimeoutResetsThoseThatAreLeft(timeout: String, threads: String) throws {
        let server = try ServerProcess.serving("--threads", threads, "--drain-timeout", timeout)
        let clients = try (0..<2).map { _ in try Peer.stalled(at: server) }
        expect(try server.terminate().hasPrefix("totals: 0 open, 2 connections (peak 2, 2 failed), "))
        for client in clients { expectEqual(client.failureOfReading(), ECONNRESET) }
    }
}
