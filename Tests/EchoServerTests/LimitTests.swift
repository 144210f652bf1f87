@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

struct LimitTests {
    @Test(arguments: ["1", "3"]) func thoseBeyondMaxConnectionsWait(threads: String) throws {
        let server = try ServerProcess.serving("--threads", threads, "--max-connections", "2")
        let clients = try (0..<5).map { _ in try Peer(to: server.address) }
        expect(try clients[0].echoes("a") && clients[1].echoes("b"))
        for client in clients[2...] { try client.send([0x78]) }
        expect(!clients[2].waits(for: POLLIN, 50))
        expect(try server.statistics().hasPrefix("statistics: 2 open, 2 connections "))
        for (index, client) in clients.enumerated() {
            client.end()
            expectEqual(try client.readToEnd(), (index < 2 ? [] : [0x78]))
        }
        expect(try server.terminate().hasPrefix("totals: 0 open, 5 connections (peak 2, 0 failed), 5 bytes, "))
    }

    @Test(arguments: ["1", "2"]) func whoIsSilentForTheIdleTimeoutIsEnded(threads: String) throws {
        let server = try ServerProcess.serving("--threads", threads, "--idle-timeout", "100ms")
        let clients = try (0..<2).map { _ in try Peer(to: server.address) }
        let begin = ContinuousClock.now
        for client in clients { expect(try client.echoes("hello")) }
        for client in clients { expectEqual(try client.receive(), []) }
        expect(ContinuousClock.now - begin >= .milliseconds(100))
        expect(try server.terminate().hasPrefix("totals: 0 open, 2 connections (peak 2, 2 failed), 10 bytes, "))
    }

    @Test(.enabled(if: mayHaveDescriptors(20_000), "the hard limit of descriptors is below 20,000"))
    func theLimitOfDescriptorsIsRaised() throws {
        let server = try ServerProcess.serving(limits: "ulimit -S -n 256")
        expect(server.descriptorLimit > 256)
        try server.terminate()
    }

    /// Descriptors remain for everything else even with the maximum number of clients, and more.
    @Test(arguments: ["1", "2"]) func aLimitOfDescriptorsThatIsTooLowIsSaidAndKept(threads: String) throws {
        let server = try ServerProcess.serving(
            "--metrics", "127.0.0.1:0", "--threads", threads, limits: "ulimit -n 128")
        let line = try server.readError()
        expect(line.hasPrefix("echo-server: serving at most "))
        expect(line.contains("not 10000: the limit of descriptors is 128 (RLIMIT_NOFILE, 128 at the start)"))
        let limit = try number(before: "connections", in: line)
        expect((20...100).contains(limit))
        let clients = try (0..<150).map { _ in try Peer(to: server.address) }
        for client in clients[..<limit] { expect(try client.echoes("hello")) }
        try clients[limit].send([0x78])
        expect(!clients[limit].waits(for: POLLIN, 50))
        let scrapers = try (0..<20).map { _ in
            try Answer.to("GET /metrics HTTP/1.1\r\n\r\n", at: Peer(to: try #require(server.metricsAddress)))
        }
        for answer in scrapers {
            expect(answer.status == "200 OK" && answer.body.contains("echo_connections_limit \(limit)\n"))
        }
        expect(!server.hasMoreErrors)
        for client in clients { client.end() }
        for client in clients { _ = try client.readToEnd() }
        try server.terminate()
    }

    /// No more is reserved than used; a fifth is for lingering connections.
    @Test(
        .disabled(if: isSanitized),
        arguments: [(10, 1, []), (16, 1, ["--threads", "2"]), (12, 1, ["--metrics", "127.0.0.1:0"]), (40, 25, [])])
    func fewDescriptorsServeAsManyClientsAsTheyCan(limit: Int, served: Int, options: [String]) throws {
        let server = try ServerProcess(["--listen", "127.0.0.1:0"] + options, limits: "ulimit -n \(limit)")
        let address = try SocketAddress(String(server.readLine().dropFirst("listening on ".count)))
        expectEqual(try number(before: "connections", in: server.readError()), served)
        let clients = try (0..<served).map { _ in try Peer(to: address) }
        for client in clients { expect(try client.echoes("hello")) }
        for client in clients { try client.leave() }
        expect(try server.terminate().contains("totals: 0 open, \(served) connections "))
    }

    @Test func withoutDescriptorsClientsWaitUntilThereAreSome() throws {
        let server = try ServerProcess.serving()
        // Not earlier: the server stays below a limit that exists at its start.
        server.descriptorLimit = 24
        let clients = try (0..<40).map { _ in try Peer(to: server.address) }
        for client in clients { try client.send([0x78]) }
        expect(try server.readError().contains("(EMFILE)"))
        let begin = try server.statistics()
        let room = try number(before: "open", in: begin)
        try #require((8...24).contains(room))
        var served = Array(clients[..<room])
        let waiting = Array(clients[room...])
        for client in served { expectEqual(try client.receive(), [0x78]) }

        // The pause: few turns, one report, and connected clients are served.
        expect(!waiting[0].waits(for: POLLIN, 300))
        for client in served { expect(try client.echoes("meanwhile")) }
        let turns = try number(before: "turns", in: server.statistics()) - number(before: "turns", in: begin)
        expect(turns <= 30 + 3 * served.count, "the server spins")
        expect(!server.hasMoreErrors)

        // One leaves, one enters.
        let freed = ContinuousClock.now
        served.removeLast().end()
        expectEqual(try waiting[0].receive(), [0x78])
        expect(ContinuousClock.now - freed < .seconds(2))
        // All leave, all enter.
        for client in served { client.end() }
        for (index, client) in waiting.enumerated() {
            if index > 0 { expectEqual(try client.receive(), [0x78]) }
            try client.leave()
        }
        server.signal(SIGTERM)
        let rest = try server.readToEnd()
        expect(rest.output.hasPrefix("totals: 0 open, 40 connections "))
        expect(rest.errors.split(separator: "\n").allSatisfy { $0.contains("(EMFILE)") })
        expectEqual(try server.waitForExit(), .code(0))
    }
}
