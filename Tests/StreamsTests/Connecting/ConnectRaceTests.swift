import Glibc
import Promises
import Reactor
import TestSupport
import Testing

@testable import PromisesTestSupport

/// Connecting to the fastest of several addresses.
@Suite struct ConnectRaceTests {
    /// A listener that answers no client: its backlog is full.
    private func blackHole(_ net: Network, _ address: String = "127.0.0.1:0") throws -> (Listener, Peer) {
        let hole = try net.listen(address, backlog: 0)
        return (hole, try Peer(to: hole.localAddress))
    }

    private func closedPort(_ net: Network) throws -> SocketAddress {
        let listener = try net.listen()
        listener.close()
        return listener.localAddress
    }

    @Test func theSecondIsTriedAfterAQuarterOfASecond() throws {
        let clock = VirtualClock()
        try withNetwork(clock: clock) { net in
            let (hole, filler) = try blackHole(net)
            let listener = try net.listen()
            let begin = clock.now
            var starts: [Duration] = []
            let real = net.kernel.startConnect
            net.kernel.startConnect = {
                starts.append(begin.duration(to: clock.now))
                return real($0, $1, $2)
            }
            let client = try hang(connect(to: [hole.localAddress, listener.localAddress], timeout: .seconds(5)))
            expectEqual(starts, [.zero, .milliseconds(250)])
            expectEqual(client.peerAddress, listener.localAddress)
            expectEqual(net.calls(.close), 1, "the loser's")
            expectEqual(net.loop.nextDeadline, nil)
            client.abort()
            filler.close()
        }
    }

    @Test func oneThatFailsIsFollowedAtOnce() throws {
        let clock = VirtualClock()
        try withNetwork(clock: clock) { net in
            let listener = try net.listen()
            let targets = try [closedPort(net), closedPort(net), listener.localAddress]
            let client = try hang(connect(to: targets))
            expectEqual(clock.now, LoopInstant(nanoseconds: 0))
            expectEqual(client.peerAddress, listener.localAddress)
            expectEqual(net.loop.nextDeadline, nil)
            client.abort()
        }
    }

    @Test func theFirstMayStillWinAfterTheSecondHasBegun() throws {
        let clock = VirtualClock()
        try withNetwork(clock: clock) { net in
            let folder = Folder()
            // A full Unix backlog is retried by a timer, and so in virtual time.
            let slow = try net.listen("unix:\(folder / "a")", backlog: 0)
            let filler = try Peer(to: slow.localAddress)
            let (hole, second) = try blackHole(net)
            let attempt = connect(to: [slow.localAddress, hole.localAddress])
            net.settle(.milliseconds(300))
            expect(net.calls(.connect) > 2 && attempt.isPending)
            try hang(slow.accept())
            let client = try hang(attempt)
            expectEqual(client.peerAddress, slow.localAddress)
            expectEqual(net.loop.nextDeadline, nil)
            client.abort()
            filler.close()
            second.close()
        }
    }

    @Test func ifAllFailTheErrorNamesEach() throws {
        try withNetwork { net in
            let targets = try [closedPort(net), closedPort(net)]
            let error = #expect(throws: ConnectError.self) { try hang(connect(to: targets), timeout: patience) }
            expectEqual(error?.failures.map(\.address), targets)
            expectEqual(error?.failures.map(\.error.code), [ECONNREFUSED, ECONNREFUSED])
            let text = "\(error!)"
            for target in targets { expect(text.contains("connect \(target): Connection refused (ECONNREFUSED)")) }
        }
    }

    @Test func ofANameTheErrorNamesThatToo() throws {
        try withNetwork { net in
            let target = try closedPort(net)
            let attempt = connect(to: "example.com:80", lookup: TestLookup { _, _ in .value([target]) })
            let error = #expect(throws: ConnectError.self) { try hang(attempt, timeout: patience) }
            expectEqual(error?.target, "example.com:80")
            expectEqual(error?.failures.map(\.address), [target])
        }
    }

    @Test func theDeadlineIsForTheWhole() throws {
        let clock = VirtualClock()
        try withNetwork(clock: clock) { net in
            let holes = try (0..<3).map { _ in try blackHole(net) }
            let attempt = connect(to: holes.map(\.0.localAddress), timeout: .milliseconds(600))
            #expect(throws: PromiseError.timedOut) { try hang(attempt) }
            expectEqual(clock.now, LoopInstant(nanoseconds: 600_000_000))
            expectEqual(net.calls(.connect), 3)
            expectEqual(net.calls(.close), 3)
            expectEqual(net.loop.nextDeadline, nil)
            for hole in holes { hole.1.close() }
        }
    }

    @Test func cancelledItClosesAllAttempts() throws {
        try withNetwork(clock: VirtualClock()) { net in
            let holes = try (0..<3).map { _ in try blackHole(net) }
            let attempt = connect(to: holes.map(\.0.localAddress))
            net.settle(.milliseconds(300))
            expectEqual(net.calls(.connect), 2)
            var settled = 0
            attempt.tap { _ in settled += 1 }.ignoringErrors()
            attempt.cancel()
            expectEqual(net.calls(.close), 2)
            net.settle(.seconds(5))
            expect(net.calls(.connect) == 2 && settled == 1)
            expectEqual(attempt.error?.isCancelled, true)
            for hole in holes { hole.1.close() }
        }
    }

    @Test func theLoopEndsMeanwhile() throws {
        var attempt: Promise<Connection>?
        try withNetwork(clock: VirtualClock()) { net in
            let holes = try (0..<2).map { _ in try blackHole(net) }
            attempt = connect(to: holes.map(\.0.localAddress))
            net.settle(.milliseconds(300))
            for hole in holes { hole.1.close() }
        }
        expectEqual(attempt.flatMap { code($0) }, ECANCELED)
    }

    @Test func familiesTakeTurns() throws {
        var tried: [SocketAddress] = []
        try withNetwork { net in
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
            let sixFirst = try order(six + four)
            expectEqual(sixFirst, [six[0], four[0], six[1], four[1], six[2]])
            let fourFirst = try order(four + six)
            expectEqual(fourFirst, [four[0], six[0], four[1], six[1], six[2]])
            let sixOnly = try order(six)
            expectEqual(sixOnly, six)
            let distinct = try order([four[0], four[0], four[1]])
            expectEqual(distinct, four, "none twice")
        }
    }

    @Test func noAddressAtAll() throws {
        try withNetwork { net in
            expectEqual(code(connect(to: [SocketAddress]())), EINVAL)
        }
    }

    @Test(.enabled(if: hasIPv6, "there is no IPv6 loopback address"))
    func theAddressOfThisSideCanBeChosen() throws {
        try withNetwork { net in
            let listener = try net.listen()
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
}
