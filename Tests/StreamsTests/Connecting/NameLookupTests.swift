@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// A lookup that a test answers itself.
struct TestLookup: NameLookup {
    // The closure stays on the thread of the test's loop, where connect calls it.
    nonisolated(unsafe) let answer: (String, UInt16) -> Promise<[SocketAddress]>

    nonisolated(unsafe) var isAllowed: (SocketAddress) -> Bool = { _ in true }

    init(_ answer: @escaping (String, UInt16) -> Promise<[SocketAddress]>) { self.answer = answer }

    func allows(_ address: SocketAddress) -> Bool { isAllowed(address) }

    func addresses(of host: String, port: UInt16) -> Promise<[SocketAddress]> { answer(host, port) }

    /// Fails the test that uses it.
    static var forbidden: TestLookup {
        TestLookup { host, _ in
            Issue.record("\(host) is looked up")
            return Promise(error: PromiseError.abandoned)
        }
    }
}

struct NameLookupTests {
    @Test(.listener, .enabled(if: hasIPv6, "there is no IPv6 loopback address"))
    func whatIsNoNameIsNotLookedUp() throws {
        let folder = Folder()
        let six = try net.listen("[::1]:0")
        let unix = try net.listen("unix:\(folder / "a")")
        let port = listener.localAddress.port
        let targets = ["127.0.0.1:\(port)", "localhost:\(port)", "\(six.localAddress)", "\(unix.localAddress)"]
        for target in targets {
            try hang(connect(to: target, lookup: TestLookup.forbidden), timeout: patience).abort()
        }
        expect(connect(to: "::1:80", lookup: TestLookup.forbidden).error is SocketAddress.ParseError)
        expect(connect(to: "256.1.1.1:80", lookup: TestLookup.forbidden).error is SocketAddress.ParseError)
    }

    /// Wherever they are from; nothing is opened for them.
    @Test(.listener) func whatTheLookupDoesNotAllowIsNotConnectedTo() throws {
        let (open, port) = (listener.localAddress, listener.localAddress.port)
        let closed = SocketAddress(host: "127.0.0.2", port: port)!
        var seen: [SocketAddress] = []
        var lookup = TestLookup { _, _ in .value([closed, open]) }
        lookup.isAllowed = { address in
            seen.append(address)
            return address == open
        }
        let reason = "which the lookup does not allow: Permission denied (EACCES)"
        let single = connect(to: closed, lookup: lookup)
        expectEqual("\(single.error!)", "connect \(closed), \(reason)")
        expect("\(connect(to: "unix:/x", lookup: lookup).error!)".hasPrefix("connect unix:/x, which"))
        expect("\(connect(to: [closed, closed], lookup: lookup).error!)".hasSuffix("connect \(closed), \(reason)"))
        let six = "[::1]:\(port)"
        expectEqual(seen.map(\.description), ["\(closed)", "unix:/x", "\(closed)", "\(closed)"])
        expectEqual(net.calls(.socket) - net.calls(.bind), 0)
        for target in [["localhost:\(port)"], ["example.com:\(port)"], ["\(closed)", "\(open)"]] {
            seen = []
            let promise =
                target.count == 1 ? connect(to: target[0], lookup: lookup) : connect(to: target, lookup: lookup)
            let connection = try hang(promise, timeout: patience)
            expectEqual(seen.last, open)
            expectEqual(seen.count, 2)
            expect(target[0].hasPrefix("local") ? "\(seen[0])" == six : seen[0] == closed)
            connection.abort()
        }
    }

    @Test(.network(.virtual)) func theLookupMayCancelTheConnect() throws {
        let address = SocketAddress.loopback(port: 7)
        for isAllowed in [true, false] {
            var attempt: Promise<Connection>?
            var lookup = TestLookup { _, _ in after(.seconds(1)).map { [address, address.with(port: 8)] } }
            lookup.isAllowed = { _ in
                attempt?.cancel()
                return isAllowed
            }
            attempt = connect(to: "example.com:80", lookup: lookup)
            net.settle(.seconds(2))
            expectEqual(attempt?.error?.isCancelled, true)
        }
        expectEqual(net.calls(.socket), 0)
    }

    @Test(.network) func theErrorOfTheLookupIsTheErrorOfTheConnect() throws {
        let failure = NameLookupError(host: "example.com", code: EAI_NONAME)
        let attempt = connect(to: "example.com:80", lookup: TestLookup { _, _ in Promise(error: failure) })
        #expect(throws: failure) { try hang(attempt) }
        expect("\(failure)".hasPrefix("look up example.com: "))
        let nothing = connect(to: "example.com:80", lookup: TestLookup { _, _ in .value([]) })
        let error = #expect(throws: ConnectError.self) { try hang(nothing) }
        expectEqual(error?.failures.isEmpty, true)
        expectEqual("\(error!)", "cannot connect to example.com:80: it has no address")
        expectEqual(net.calls(.socket), 0)
    }

    @Test(.listener) func theSystemFindsItsOwnName() throws {
        let found = SystemNameLookup.shared.addresses(of: "localhost", port: listener.localAddress.port)
        expect(try hang(found, timeout: patience).contains(listener.localAddress))
        // With a dot it is a name like any other, but still in the hosts file or known to the library.
        let numeric = SystemNameLookup.shared.addresses(of: "127.0.0.1", port: 7)
        expectEqual(try hang(numeric, timeout: patience), [try SocketAddress("127.0.0.1:7")])
    }

    @Test(.network) func theSystemSaysWhichNameItDoesNotKnow() throws {
        // Too long for a query to any server.
        let name = String(repeating: "a", count: 64) + ".invalid"
        let error = #expect(throws: NameLookupError.self) {
            try hang(SystemNameLookup.shared.addresses(of: name, port: 1), timeout: patience)
        }
        expectEqual(error?.host, name)
        #expect(throws: DispatchError.self, "without threads") { try SystemNameLookup(threads: 0) }
    }

    @Test(.listener(.virtual)) func aSlowLookupHoldsNothingUpAndCanBeCancelled() throws {
        let lookup = TestLookup { _, _ in after(.seconds(2)).map { [listener.localAddress] } }
        let attempt = connect(to: "example.com:80", lookup: lookup)
        hang(after(.milliseconds(10)))
        expectEqual(net.loop.now, LoopInstant(nanoseconds: 10_000_000))
        attempt.cancel()
        expectEqual(attempt.error?.isCancelled, true)
        net.settle(.seconds(5))
        expectEqual(net.calls(.connect), 0)
        expectEqual(net.loop.nextDeadline, nil)
    }

    @Test(.listener(.virtual)) func aLateAnswerIsIgnored() throws {
        let (answer, resolver) = Promise<[SocketAddress]>.pending()
        // The lookup has another listener, so it is not cancelled.
        answer.ignoringErrors()
        let attempt = connect(to: "example.com:80", timeout: .milliseconds(50), lookup: TestLookup { _, _ in answer })
        #expect(throws: PromiseError.timedOut) { try hang(attempt) }
        resolver.fulfill([listener.localAddress])
        net.settle(.seconds(1))
        expectEqual(net.calls(.connect), 0)
    }

    @Test(.network(.virtual)) func theTimeOutCancelsTheLookup() throws {
        var isCancelled = false
        let lookup = TestLookup { _, _ in
            let (answer, resolver) = Promise<[SocketAddress]>.pending()
            resolver.onCancel { withExtendedLifetime(resolver) { isCancelled = true } }
            return answer
        }
        #expect(throws: PromiseError.timedOut) {
            try hang(connect(to: "example.com:80", timeout: .milliseconds(50), lookup: lookup))
        }
        expectEqual(net.loop.now, LoopInstant(nanoseconds: 50_000_000))
        net.settle()
        expect(isCancelled)
    }

    @Test func theLoopEndsDuringALookup() throws {
        var attempt: Promise<Connection>?
        let (answer, resolver) = Promise<[SocketAddress]>.pending()
        _ = try logged {
            try withNetwork(clock: VirtualClock()) { net in
                attempt = connect(to: "example.com:80", timeout: .seconds(1), lookup: TestLookup { _, _ in answer })
                net.settle()
            }
        }
        resolver.fulfill([])
        expectEqual(attempt?.isPending, false)
    }
}
