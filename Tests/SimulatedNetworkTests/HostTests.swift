import Glibc
import Promises
import Reactor
import ReactorIO
import SimulatedNetwork
import TestSupport
import Testing

/// Hosts: addresses, names, crashes, pauses, faults of system calls.
struct HostTests {
    @Test func aHandlerBelongsToItsHost() throws {
        try withSimulatedNetwork { network in
            let server = network.host("server"), client = network.host("client")
            var peers: [String] = []
            try server.run {
                try Listener.bind("0.0.0.0:7000").serve { connection in
                    peers.append("\(connection.peerAddress!.hostText)")
                    return after(.seconds(1)).then {
                        // Started by a handler, on the server.
                        connect(to: "localhost:7001").then { $0.readLine() }.then { connection.write("\($0!)\n") }
                    }
                }.cauterize()
                try Listener.bind("127.0.0.1:7001").serve { $0.write("inner\n") }.cauterize()
            }
            let answer = client.run { connect(to: "server:7000").then { $0.readLine() } }
            expectEqual(try hang(answer), "inner")
            expectEqual(peers, [client.addresses[0].hostText])
            // The inner port is only on the server's loopback.
            let failure = errorOf { try hang(client.run { connect(to: "server:7001") }) }
            expect("\(failure)".contains("ECONNREFUSED"), "\(failure)")
        }
    }

    @Test func namesFailAndAreSlow() {
        withSimulatedNetwork { network in
            let client = network.host("client")
            network.setName("gone", .error(EAI_NONAME))
            network.setName("slow", .error(EAI_AGAIN), after: .seconds(5))
            func lookUp(_ name: String) -> any Error { errorOf { try hang(client.run { connect(to: name) }) } }
            expectEqual((lookUp("gone:1") as? NameLookupError)?.code, EAI_NONAME)
            expectEqual((lookUp("nobody:1") as? NameLookupError)?.code, EAI_NONAME)
            expectEqual(network.now, LoopInstant(nanoseconds: 0))
            expectEqual((lookUp("slow:1") as? NameLookupError)?.code, EAI_AGAIN)
            expectEqual(network.now, LoopInstant(nanoseconds: 5_000_000_000))
        }
    }

    @Test func theSecondAddressOfANameIsTriedAfterTheFirst() throws {
        try withSimulatedNetwork { network in
            let server = network.host("server"), client = network.host("client"), down = network.host("down")
            try server.run { try serveLines() }
            network.link(client, down).connects = .ignored
            network.setName("service", .addresses([down.addresses[0], server.addresses[0]]))
            let connection = try hang(client.run { connect(to: "service:7000") })
            expectEqual(connection.peerAddress?.hostText, server.addresses[0].hostText)
            // RFC 8305: the next attempt begins 250 ms after the first.
            expectEqual(network.now, LoopInstant(nanoseconds: 250_000_000))
        }
    }

    @Test func aCrashIsSilentAndARestartAnswersWithAReset() throws {
        try withLineServer { network, client, server in
            let connection = try hang(client.run { connect(to: "server:7000") })
            server.crash()
            expect(!server.isUp)
            let outcome = client.run {
                connection.write("anyone?\n").asVoid().recover { _ in .value }.then { connection.read() }
            }
            network.run(for: .seconds(60))
            expect(outcome.isPending)
            try server.restart { try serveLines() }
            guard case .failed(let error) = hang(outcome) else { return expect(false) }
            expect("\(error)".contains("ECONNRESET"), "\(error)")
            let again = client.run { connect(to: "server:7000").then { c in c.write("b\n").then { c.readLine() } } }
            expectEqual(try hang(again), "b!")
        }
    }

    /// An accepted connection; one that waits in the backlog; one whose last segment of the handshake is on its way.
    @Test(arguments: [40, 30, 15]) func keepAliveFindsAPeerThatHasVanished(crashAfter milliseconds: Int) throws {
        let latency = Duration.milliseconds(10)
        try withLineServer(prepare: { $0.latency = latency...latency }) { network, client, server in
            func tcp(_ name: CInt) -> SocketOption<Int> { SocketOption(level: CInt(IPPROTO_TCP), name: name) }
            let options: [SocketSetting] = [
                .set(.keepAlive, to: true), .set(tcp(TCP_KEEPIDLE), to: 30), .set(tcp(TCP_KEEPINTVL), to: 10),
                .set(tcp(TCP_KEEPCNT), to: 3),
            ]
            let outcome = client.run { connect(to: "server:7000", options: options).then { $0.read() } }
            if milliseconds == 30 { server.pause(for: .seconds(1)) }
            network.run(for: .milliseconds(milliseconds))
            server.crash()
            guard case .failed(let error) = try hang(outcome, timeout: .seconds(1000)) else { return expect(false) }
            expect("\(error)".contains("ETIMEDOUT"), "\(error)")
            // The last segment of the handshake arrives after 30 ms.
            let crash = Int64(max(milliseconds, 30)) * 1_000_000
            expectEqual(network.now, LoopInstant(nanoseconds: 60_000_000_000 + crash))
        }
    }

    @Test func aPausedHostAnswersLater() throws {
        try withLineServer { network, client, server in
            server.pause(for: .seconds(7))
            let answer = client.run { connect(to: "server:7000").then { c in c.write("a\n").then { c.readLine() } } }
            expectEqual(try hang(answer), "a!")
            expectEqual(network.now, LoopInstant(nanoseconds: 7_000_000_000))
        }
    }

    @Test func aRestartEndsAPause() throws {
        try withLineServer { network, client, server in
            server.pause(for: .seconds(60))
            server.crash()
            try server.restart { try serveLines() }
            let answer = client.run { connect(to: "server:7000").then { c in c.write("a\n").then { c.readLine() } } }
            expectEqual(try hang(answer), "a!")
            expectEqual(network.now, LoopInstant(nanoseconds: 0))
        }
    }

    @Test func eachDescriptorCountsForTheLimit() throws {
        try withLineServer { network, client, server in
            func make(_ room: Int, _ body: () throws -> Void) -> String {
                client.faults.descriptorLimit = client.openDescriptors + room
                defer { client.faults.descriptorLimit = .max }
                return client.run { "\(errorOf(body))" }
            }
            let makers: [(needed: Int, make: () throws -> Void)] = [
                (1, { _ = try Listener.bind("0.0.0.0:1") }), (2, { _ = try Connection.pair() }),
                (1, { _ = try Listener.bind("unix:/socket") }),
            ]
            for (needed, body) in makers {
                expect(make(needed - 1, body).contains("EMFILE"), "\(needed)")
                expect(!make(needed, body).contains("EMFILE"), "\(needed)")
            }
        }
    }

    @Test func systemCallsFailAtTheirNumberOrByDice() throws {
        try withLineServer { network, client, server in
            server.faults.fail(.accept, with: EMFILE, calls: 1...3)
            client.faults.fail(.socket, with: ENFILE)
            let refused = errorOf { try hang(client.run { connect(to: "server:7000") }) }
            expect("\(refused)".contains("ENFILE"), "\(refused)")
            let answer = client.run { connect(to: "server:7000").then { c in c.write("a\n").then { c.readLine() } } }
            expectEqual(try hang(answer), "a!")
            // The listener pauses for 100 ms after each refusal.
            expectEqual(network.now, LoopInstant(nanoseconds: 300_000_000))
        }
    }

    @Test func shortCountsLoseNothing() throws {
        try withLineServer { network, client, server in
            (server.faults.shortCounts, client.faults.shortCounts) = (0.8, 0.8)
            let text = String(repeating: "abcdefgh", count: 400)
            let answer = client.run {
                connect(to: "server:7000").then { c in c.write("\(text)\n").then { c.readLine() } }
            }
            expectEqual(try hang(answer), text + "!")
        }
    }

    @Test func unixSocketsBelongToTheirHost() throws {
        try withSimulatedNetwork { network in
            let server = network.host("server"), client = network.host("client")
            try server.run {
                try Listener.bind("unix:/run/service.sock").serve { $0.write("hello\n") }.cauterize()
            }
            let inside = server.run { connect(to: "unix:/run/service.sock").then { $0.readLine() } }
            expectEqual(try hang(inside), "hello")
            let outside = errorOf { try hang(client.run { connect(to: "unix:/run/service.sock") }) }
            expect("\(outside)".contains("ENOENT"), "\(outside)")
        }
    }

    @Test func aGroupOfLoopsIsRefused() throws {
        let group = try LoopGroup(loops: 1)
        withSimulatedNetwork { network in
            let failure = errorOf { try LoopGroup(loops: 1) }
            expect("\(failure)".contains("a simulated network has one thread"), "\(failure)")
            let served = errorOf {
                try network.host("server").run {
                    try hang(Listener.bind("0.0.0.0:7000").serve(on: group) { $0.write("x") })
                }
            }
            expect("\(served)".contains("a simulated network has one thread"), "\(served)")
        }
        group.stop()
    }

    @Test func aRawPeerSpeaksBytes() throws {
        try withSimulatedNetwork { network in
            let server = network.host("server")
            try server.run { try serveLines() }
            try network.test.connect(to: "server:7000") { peer in
                try peer.send("hel")
                try peer.send("lo\n")
                try peer.expect("hello!\n")
                let mismatch = errorOf {
                    try peer.send("x\n")
                    try peer.expect("y!\n")
                }
                expectEqual("\(mismatch)", #"expected "y!\n", got "x!\n""#)
            }
        }
    }

    @Test(.ownThread) func aLoopThatSpinsEndsTheProcessWithItsNameAndTheSeed() async throws {
        let result = try await #require(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            HostTests.simulateASpin()
        }
        let text = String(decoding: result.standardErrorContent, as: UTF8.self)
        expect(text.contains("the host server spins: 100,000 turns without a packet; SIMULATION_SEED=5"), text)
    }

    private static func simulateASpin() {
        withSimulatedNetwork(seed: 5) { network in
            func spin() { after(.zero).done { spin() } }
            network.host("server").run { spin() }
            network.run(for: .seconds(1))
        }
    }

    @Test func aFailureNamesTheSmallestSeed() throws {
        let failure = errorOf {
            try forEachSeed(1...40) { network in
                if network.seed % 7 == 0 { throw PromiseError.badInput("seven") }
            }
        }
        expectEqual((failure as? SimulationFailure)?.seed, 7)
    }
}
