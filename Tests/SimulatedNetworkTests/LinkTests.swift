import CLinux
import Glibc
import Promises
import Reactor
import ReactorHTTP
import ReactorIO
import SimulatedNetwork
import TestSupport
import Testing

/// The effects of a link on its packets.
struct LinkTests {
    private func ask(_ text: String, _ connection: Connection) -> Promise<String?> {
        connection.write("\(text)\n").then { connection.readLine() }
    }

    @Test func withoutLatencyNoTimePasses() throws {
        try withLineServer { network, client, _ in
            let answer = client.run { connect(to: "server:7000").then { ask("a", $0) } }
            expectEqual(try hang(answer), "a!")
            expectEqual(network.now, LoopInstant(nanoseconds: 0))
        }
    }

    /// As with net.ipv4.tcp_abort_on_overflow = 0.
    @Test(arguments: [false, true]) func clientsThatFindTheBacklogFullAreServedLater(theyWait: Bool) throws {
        try withSimulatedNetwork { network in
            let server = network.host("server"), client = network.host("client")
            network.link(client, server).latency = .milliseconds(5) ... .milliseconds(5)
            let listener = try server.run { try Listener.bind("0.0.0.0:7000", backlog: 2) }
            let answers = client.run {
                (0..<10).map { _ in
                    connect(to: "server:7000").then { connection in
                        theyWait ? connection.readLine() : connection.write("a\n").then { connection.readLine() }
                    }
                }
            }
            // All have connected, and three wait for accept(2).
            network.run(for: .milliseconds(100))
            server.run {
                listener.serve { connection in
                    theyWait
                        ? connection.write("hello\n") : connection.readLine().then { connection.write("\($0!)!\n") }
                }.cauterize()
            }
            let all = try hang(when(fulfilled: answers), timeout: .seconds(60))
            expectEqual(all, Array(repeating: theyWait ? "hello" : "a!", count: 10))
            // Three at a time, when the clients repeat their bytes, after 0.2, 0.6 and 1.4 s, or the kernel its answer.
            expect(network.now < LoopInstant(nanoseconds: theyWait ? 7_100_000_000 : 1_500_000_000), "\(network.now)")
        }
    }

    /// The kernel forgets the request, and the client learns that when it sends something.
    @Test func aClientThatFindsTheBacklogFullForAMinuteIsReset() throws {
        try withSimulatedNetwork { network in
            let server = network.host("server"), client = network.host("client")
            network.link(client, server).latency = .milliseconds(5) ... .milliseconds(5)
            let listener = try server.run { try Listener.bind("0.0.0.0:7000", backlog: 0) }
            let both = try hang(client.run { when(fulfilled: (0..<2).map { _ in connect(to: "server:7000") }) })
            network.run(for: .seconds(64))
            for connection in both { client.run { connection.write("a\n").cauterize() } }
            let reads = both.map { connection in client.run { connection.receive(upTo: 1) } }
            let failure = errorOf { try hang(reads[1], timeout: .seconds(1)) }
            expect("\(failure)".contains("ECONNRESET"), "\(failure)")
            expect(reads[0].isPending)
            server.run { listener.close() }
        }
    }

    @Test func latencyIsThatOfEachWay() throws {
        try withLineServer { network, client, server in
            network.link(from: client, to: server).latency = .milliseconds(3) ... .milliseconds(3)
            network.link(from: server, to: client).latency = .milliseconds(10) ... .milliseconds(10)
            let answer = client.run { connect(to: "server:7000").then { ask("a", $0) } }
            expectEqual(try hang(answer), "a!")
            // SYN and SYN ACK, then the line and its answer.
            expectEqual(network.now, LoopInstant(nanoseconds: 26_000_000))
        }
    }

    @Test(arguments: [StreamCut.whole, .everyByte, .segments(3), .random]) func aStreamStaysInOrderHoweverItIsCut(
        _ cut: StreamCut
    ) throws {
        try withLineServer(prepare: { $0.cut = cut }) { _, client, _ in
            let text = String((0..<500).map { Character(UnicodeScalar(UInt8(97 + $0 % 26))) })
            let answer = client.run { connect(to: "server:7000").then { ask(text, $0) } }
            expectEqual(try hang(answer, timeout: .seconds(1)), text + "!")
        }
    }

    @Test func eachByteArrivesOnItsOwn() throws {
        try withSimulatedNetwork { network in
            let server = network.host("server"), client = network.host("client")
            network.link(client, server).cut = .everyByte
            var sizes: [Int] = []
            try server.run {
                try Listener.bind("0.0.0.0:7000").serve { connection in
                    connection.forEachChunk { sizes.append($0.byteCount) }
                }.cauterize()
            }
            try client.connect(to: "server:7000") { peer in
                try peer.send("hello")
                try peer.end()
                expectEqual(try peer.receiveToEnd(), "")
            }
            expectEqual(sizes, [1, 1, 1, 1, 1])
        }
    }

    @Test func bandwidthMakesAWriteWait() throws {
        try withSimulatedNetwork { network in
            let server = network.host("server"), client = network.host("client")
            network.link(from: client, to: server).bandwidth = 1_000_000
            try server.run {
                try Listener.bind("0.0.0.0:7000").serve { $0.forEachChunk { _ in } }.cauterize()
            }
            let written = client.run {
                connect(to: "server:7000").then { $0.write([UInt8](repeating: 0, count: 3_000_000)) }
            }
            try hang(written, timeout: .seconds(10))
            // All but the contents of the kernel's buffers has been sent: 2.5 s and more.
            expect(network.now > LoopInstant(nanoseconds: 2_000_000_000))
            expect(network.now < LoopInstant(nanoseconds: 3_500_000_000))
        }
    }

    @Test func aPartitionHoldsUpAStreamAndLosesNothing() throws {
        try withLineServer { network, client, server in
            let connection = try hang(client.run { connect(to: "server:7000") })
            network.partition(client, server, for: .seconds(40))
            let answer = client.run { ask("late", connection) }
            expectThrows(PromiseError.timedOut) { try hang(answer, timeout: .seconds(39)) }
            expectEqual(try hang(answer, timeout: .seconds(2)), "late!")
        }
    }

    @Test func aPartitionThatStaysEndsAConnectionThatSends() throws {
        try withLineServer { network, client, server in
            let connection = try hang(client.run { connect(to: "server:7000") })
            network.partition(client, server)
            _ = client.run { connection.write("lost\n") }
            let outcome = client.run { connection.read() }
            let failed = try hang(outcome, timeout: .seconds(2000))
            guard case .failed(let error) = failed else { return expect(false, "\(failed)") }
            expect("\(error)".contains("ETIMEDOUT"), "\(error)")
            expectEqual(network.now, LoopInstant(nanoseconds: 924_600_000_000))
        }
    }

    /// Before the first segment is sent, and while it is on its way, so that its answer is held up.
    @Test(arguments: [0, 5], ["server:7000", "server:1"])
    func aConnectThroughAPartitionTimesOut(cutAfter milliseconds: Int, target: String) throws {
        let latency = Duration.milliseconds(10)
        try withLineServer(prepare: { $0.latency = latency...latency }) { network, client, server in
            if milliseconds == 0 { network.partition(client, server) }
            let connection = client.run { connect(to: target) }
            network.run(for: .milliseconds(milliseconds))
            network.partition(client, server)
            let failure = errorOf { try hang(connection, timeout: .seconds(1000)) }
            expect("\(failure)".contains("ETIMEDOUT"), "\(failure)")
            // The second address is tried 250 ms after the first.
            expectEqual(network.now, LoopInstant(nanoseconds: 127_250_000_000))
        }
    }

    @Test func anEndThatIsNotAcknowledgedHasTheWholeTime() throws {
        try withLineServer { network, client, server in
            let connection = try hang(client.run { connect(to: "server:7000") })
            network.partition(client, server, for: .seconds(40))
            expectEqual(try hang(client.run { ask("held", connection) }), "held!")
            network.run(for: .seconds(880))
            network.partition(client, server)
            let outcome = client.run {
                connection.shutdownWrite().cauterize()
                return connection.read()
            }
            guard case .failed(let error) = try hang(outcome, timeout: .seconds(2000)) else { return expect(false) }
            expect("\(error)".contains("ETIMEDOUT"), "\(error)")
            // After the end at 920 s, not after the line at 0 s.
            expectEqual(network.now, LoopInstant(nanoseconds: 1_844_600_000_000))
        }
    }

    @Test(arguments: [(ConnectAnswer.refused, "ECONNREFUSED"), (.unreachable, "EHOSTUNREACH"), (.ignored, "ETIMEDOUT")])
    func aLinkMayRefuse(_ answer: ConnectAnswer, _ name: String) throws {
        try withLineServer(prepare: { $0.connects = answer }) { _, client, _ in
            let failure = errorOf { try hang(client.run { connect(to: "server:7000") }) }
            expect("\(failure)".contains(name), "\(failure)")
        }
    }

    @Test func aResetEndsBothSides() throws {
        try withLineServer { network, client, server in
            let connection = try hang(client.run { connect(to: "server:7000") })
            network.reset(client, server)
            let outcome = hang(client.run { connection.read() })
            guard case .failed(let error) = outcome else { return expect(false, "\(outcome)") }
            expect("\(error)".contains("ECONNRESET"), "\(error)")
        }
    }

    @Test func packetsThatAreHeldArriveWhenTheyAreReleased() throws {
        try withLineServer { network, client, server in
            let connection = try hang(client.run { connect(to: "server:7000") })
            network.link(client, server).hold()
            let answer = client.run { ask("held", connection) }
            network.run(for: .seconds(5))
            expect(answer.isPending)
            network.link(client, server).release()
            expectEqual(try hang(answer), "held!")
        }
    }

    @Test func datagramsAreLostDuplicatedAndReordered() throws {
        var kinds: Set<String> = []
        for seed in 1...20 as ClosedRange<UInt64> {
            try withSimulatedNetwork(seed: seed) { network in
                let server = network.host("server"), client = network.host("client")
                let link = network.link(client, server)
                (link.loss, link.duplication, link.reordering) = (0.2, 0.2, 0.2)
                var arrived: [UInt8] = []
                let receiver = try server.run {
                    let socket = try DatagramSocket.bind("0.0.0.0:53")
                    socket.forEachPacket { bytes, _ in arrived.append(bytes.unsafeLoad(as: UInt8.self)) }.cauterize()
                    return socket
                }
                let sender = try client.run { try DatagramSocket.connect(to: "\(server.addresses[0].hostText):53") }
                for number in 0..<20 as Range<UInt8> { try hang(client.run { sender.send([number]) }) }
                network.run(for: .seconds(1))
                server.run { receiver.close() }
                if Set(arrived).count < 20 { kinds.insert("lost") }
                if Set(arrived).count < arrived.count { kinds.insert("twice") }
                if arrived != arrived.sorted() { kinds.insert("out of order") }
            }
        }
        expectEqual(kinds, ["lost", "twice", "out of order"])
    }

    @Test func oneSeedGivesOneTranscript() throws {
        func transcript(_ seed: UInt64) throws -> String {
            var text = ""
            try withLineServer(
                seed: seed,
                prepare: {
                    $0.latency = .milliseconds(1) ... .milliseconds(20); $0.cut = .random; $0.loss = 0.05
                }
            ) { network, client, server in
                try server.run {
                    try Listener.bind("0.0.0.0:80").serveHTTP { request in
                        Response.webSocket(request) { socket in socket.forEach { socket.send($0) } }
                    }.cauterize()
                }
                let answers = (0..<5).map { number in
                    client.run { connect(to: "server:7000").then { ask("question \(number)", $0) } }
                }
                _ = try hang(when(fulfilled: answers))
                // The masks of its frames are random too.
                let message = client.run {
                    connectWebSocket(to: "ws://server/").then { socket in
                        socket.send(.text("masked")).then { socket.receive() }
                    }
                }
                expectEqual(try hang(message), .text("masked"))
                text = network.transcript
            }
            return text
        }
        let first = try transcript(3)
        expectEqual(first, try transcript(3))
        expect(first != (try transcript(4)))
        expect(first.hasPrefix("0.000000000 client:32768 > server:7000: SYN, arrives 0."), first)
    }
}

/// Runs `body` with a host "client", and one "server" that serves lines.
func withLineServer(
    seed: UInt64 = 1, prepare: (SimulatedLink) -> Void = { _ in },
    _ body: (VirtualNetwork, SimulatedHost, SimulatedHost) throws -> Void
) throws {
    try withSimulatedNetwork(seed: seed) { network in
        let server = network.host("server"), client = network.host("client")
        prepare(network.link(client, server))
        try server.run { try serveLines() }
        try body(network, client, server)
    }
}

/// On port 7000: answers each line with itself and an exclamation mark.
func serveLines() throws {
    try Listener.bind("0.0.0.0:7000").serve { connection in
        connection.forEachLine(limit: 4096) { connection.write("\($0)!\n") }
    }.cauterize()
}

func errorOf<Value>(_ body: () throws -> Value) -> any Error {
    do { return UnexpectedValue(description: "\(try body())") } catch { return error }
}
private struct UnexpectedValue: Error { let description: String }

func expectThrows<Failure: Error & Equatable, Value>(_ error: Failure, _ body: () throws -> Value) {
    expect(errorOf(body) as? Failure == error)
}
