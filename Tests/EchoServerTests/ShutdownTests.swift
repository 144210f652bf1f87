@testable import PromisesTestSupport

/// With one thread, which also accepts, and with several.
struct ShutdownTests {
    @Test(arguments: ["1", "2"]) func whatWasAcceptedIsEchoedToTheLastByte(threads: String) throws {
        let server = try ServerProcess.serving("--threads", threads)
        let clients = try (0..<10).map { _ in try Peer(to: server.address) }
        // No more than the kernel takes from a client at once.
        let bytes = randomBytes(30_000)
        for client in clients { try client.send(bytes) }
        server.signal(SIGTERM)
        for client in clients {
            expectEqual(try client.readToEnd(), bytes)
            client.end()
        }
        let rest = try server.readToEnd()
        // A slow server accepts the last clients after the first ones have ended.
        expect(rest.output.hasPrefix("totals: 0 open, 10 connections (peak "))
        expect(rest.output.contains(", 0 failed), 300000 bytes, "))
        expectEqual(rest.errors, "")
        expectEqual(try server.waitForExit(), .code(0))
    }

    /// Nor does a hang-up of its terminal: there is nothing to reload.
    @Test func aHangUpSignalEndsNothing() throws {
        let server = try ServerProcess.serving("--drain-timeout", "1m")
        let client = try Peer.stalled(at: server.address)
        server.signal(SIGHUP)
        expect(try Peer(to: server.address).echoes("hello"))
        server.signal(SIGTERM)
        try server.awaitDraining()
        server.signal(SIGHUP)
        client.end()
        expectEqual(client.failureOfReading(), nil)
        expectEqual(try server.waitForExit(), .code(0))
    }

    @Test(arguments: [("1", SIGTERM, 4), ("2", SIGINT, 4), ("1", SIGINT, 0), ("4", SIGTERM, 0)])
    func idleClientsAreEndedAtOnceAndSoIsTheServer(threads: String, signal: CInt, count: Int) throws {
        let server = try ServerProcess.serving("--threads", threads, "--drain-timeout", "1m")
        let clients = try (0..<count).map { _ in try Peer(to: server.address) }
        for client in clients { expect(try client.echoes("hello")) }
        server.signal(signal)
        for client in clients {
            expectEqual(try client.receive(), [])
            client.end()
        }
        let totals = "totals: 0 open, \(count) connections (peak \(count), 0 failed), \(count * 5) bytes, "
        let rest = try server.readToEnd()
        expect(rest.output.hasPrefix(totals) && rest.errors == "")
        expectEqual(try server.waitForExit(), .code(0))
    }

    @Test(arguments: [("1", SIGTERM, SIGTERM), ("1", SIGINT, SIGINT), ("2", SIGTERM, SIGINT)])
    func theSecondSignalEndsItAtOnce(threads: String, first: CInt, second: CInt) throws {
        let server = try ServerProcess.serving(
            "--threads", threads, "--drain-timeout", "1m", "--metrics", "127.0.0.1:0")
        let clients = try (0..<2).map { _ in try Peer.stalled(at: server.address) }
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
        let clients = try (0..<2).map { _ in try Peer.stalled(at: server.address) }
        server.signal(SIGTERM)
        let totals = try server.readToEnd().output
        for client in clients { expectEqual(client.failureOfReading(), ECONNRESET) }
        expect(totals.hasPrefix("totals: 0 open, 2 connections (peak 2, 2 failed), "))
        expectEqual(try server.waitForExit(), .code(0))
    }
}
