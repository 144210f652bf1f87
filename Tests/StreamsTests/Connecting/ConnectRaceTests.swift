import SimulatedNetwork

@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

struct ConnectRaceTests {
    /// Addresses of hosts that answer no client, that refuse them, and one that accepts them.
    private struct Targets {
        let silent: [SocketAddress]
        let refusing: [SocketAddress]
        let accepting: SocketAddress
    }

    /// Runs `body` on a host that leaves no descriptor open.
    private func withTargets(_ body: (VirtualNetwork, Targets) throws -> Void) throws {
        try withSimulatedNetwork { network in
            func target(_ name: String, _ answer: ConnectAnswer) -> SocketAddress {
                let host = network.host(name)
                network.link(network.test, host).connects = answer
                var address = host.addresses[0]
                address.port = 7
                return address
            }
            let listener = try network.host("server").run { try Listener.bind("0.0.0.0:7") }
            let targets = Targets(
                silent: (0..<3).map { target("silent\($0)", .ignored) },
                refusing: (0..<2).map { target("refusing\($0)", .refused) }, accepting: target("server", .normal))
            try body(network, targets)
            withExtendedLifetime(listener) {}
            expectEqual(network.test.openDescriptors, 0)
        }
    }

    @Test func textsMayBeAList() throws {
        try withTargets { network, targets in
            let refusing = targets.refusing[0].hostText + ":7"
            let client = try hang(connect(to: [refusing, "\(targets.accepting)"]))
            expectEqual(client.peerAddress, targets.accepting)
            client.abort()
            let name = connect(to: [refusing, "example.com:80"]).error as? SocketAddress.ParseError
            expectEqual(name?.description.contains("'example.com:80'"), true)
            expectEqual(code(connect(to: [SocketAddress]())), EINVAL)
            let none = connect(to: [[refusing], ["localhost:1"]])
            let error = #expect(throws: ConnectError.self) { try hang(none) }
            expectEqual(error?.target, "\(refusing), localhost:1")
            expectEqual(error?.failures.map(\.address.hostText), [targets.refusing[0].hostText, "::1", "127.0.0.1"])
        }
    }

    private func calls(_ call: SystemCall) -> Int { EventLoop.current.metrics.systemCalls[call] ?? 0 }

    @Test func theNextIsTriedAfterAQuarterOfASecondOrAFailure() throws {
        try withTargets { network, targets in
            let cases: [([SocketAddress], Int64)] = [(targets.refusing, 0), ([targets.silent[0]], 250_000_000)]
            for (others, time) in cases {
                let closes = calls(.close)
                let client = try hang(connect(to: others + [targets.accepting], timeout: .seconds(5)))
                expectEqual(network.now, LoopInstant(nanoseconds: time))
                expectEqual(client.peerAddress, targets.accepting)
                expectEqual(calls(.close), closes + others.count, "the losers'")
                expectEqual(EventLoop.current.nextDeadline, nil)
                client.abort()
            }
        }
    }

    @Test func theFirstMayStillWinAfterTheSecondHasBegun() throws {
        try withTargets { network, targets in
            // A full Unix backlog is retried by a timer.
            let slow = try Listener.bind("unix:/run/a", backlog: 0)
            let filler = try hang(connect(to: slow.localAddress))
            let attempt = connect(to: [slow.localAddress, targets.silent[0]])
            network.run(for: .milliseconds(300))
            expect(calls(.connect) > 3 && attempt.isPending)
            let accepted = try hang(slow.accept())
            let client = try hang(attempt)
            expectEqual(client.peerAddress, slow.localAddress)
            for connection in [client, accepted, filler] { connection.abort() }
            slow.close()
        }
    }

    @Test func ifAllFailTheErrorNamesEach() throws {
        try withTargets { _, targets in
            let error = #expect(throws: ConnectError.self) { try hang(connect(to: targets.refusing)) }
            expectEqual(error?.failures.map(\.address), targets.refusing)
            expectEqual(error?.failures.map(\.error.code), [ECONNREFUSED, ECONNREFUSED])
            let text = "\(error!)"
            for target in targets.refusing {
                expect(text.contains("connect \(target): Connection refused (ECONNREFUSED)"))
            }
        }
    }

    @Test func theDeadlineIsForTheWhole() throws {
        try withTargets { network, targets in
            let attempt = connect(to: targets.silent, timeout: .milliseconds(600))
            #expect(throws: PromiseError.timedOut) { try hang(attempt) }
            expectEqual(network.now, LoopInstant(nanoseconds: 600_000_000))
            expectEqual([calls(.connect), calls(.close)], [3, 3])
        }
    }

    @Test func cancelledItClosesAllAttempts() throws {
        try withTargets { network, targets in
            let attempt = connect(to: targets.silent)
            network.run(for: .milliseconds(300))
            expectEqual(calls(.connect), 2)
            var settled = 0
            attempt.tap { _ in settled += 1 }.ignoringErrors()
            attempt.cancel()
            expectEqual(calls(.close), 2)
            network.run(for: .seconds(5))
            expect(calls(.connect) == 2 && settled == 1)
            expectEqual(attempt.error?.isCancelled, true)
        }
    }

    @Test func theLoopEndsMeanwhile() throws {
        var attempt: Promise<Connection>?
        withSimulatedNetwork { network in
            let silent = network.host("silent")
            network.link(network.test, silent).connects = .ignored
            attempt = connect(to: "silent:7")
            network.run(for: .milliseconds(300))
        }
        expectEqual(attempt.flatMap { code($0) }, ECANCELED)
    }

    @Test(.network) func familiesTakeTurns() throws {
        var tried: [SocketAddress] = []
        net.kernel.startConnect = { _, address, length in
            var storage = sockaddr_storage()
            withUnsafeMutableBytes(of: &storage) {
                $0.copyMemory(from: UnsafeRawBufferPointer(start: address, count: Int(length)))
            }
            if let address = SocketAddress(storage) { tried.append(address) }
            return -Int(ENETUNREACH)
        }
        func order(_ addresses: [String]) throws -> [String] {
            tried = []
            let answer = try addresses.map { try SocketAddress($0) }
            let attempt = connect(to: "example.com:80", lookup: TestLookup { _, _ in .value(answer) })
            #expect(throws: ConnectError.self) { try hang(attempt, timeout: patience) }
            return tried.map(\.description)
        }
        let six = ["[2001:db8::1]:80", "[2001:db8::2]:80", "[2001:db8::3]:80"]
        let four = ["192.0.2.1:80", "192.0.2.2:80"]
        expectEqual(try order(six + four), [six[0], four[0], six[1], four[1], six[2]])
        expectEqual(try order(four + six), [four[0], six[0], four[1], six[1], six[2]])
        expectEqual(try order(six), six)
        let distinct = try order([four[0], four[0], four[1]])
        expectEqual(distinct, four, "none twice")
    }

    @Test(.listener, .enabled(if: hasIPv6, "there is no IPv6 loopback address"))
    func theAddressOfThisSideCanBeChosen() throws {
        let source = try SocketAddress("127.0.0.2:0")
        let client = try hang(connect(to: listener.localAddress, from: source), timeout: patience)
        expectEqual(client.localAddress?.hostText, "127.0.0.2")
        let server = try net.accept(from: listener)
        expectEqual(server.peerAddress, client.localAddress)
        let six = try SocketAddress("[::1]:0")
        expect(code(connect(to: listener.localAddress, from: six)) != nil)
        #expect(throws: SystemError(.bind, EADDRNOTAVAIL)) {
            try hang(connect(to: listener.localAddress, from: SocketAddress("198.51.100.1:0")))
        }
        client.abort()
        server.abort()
    }
}
