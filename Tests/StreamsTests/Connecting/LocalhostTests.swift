@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

@Suite(.enabled(if: hasIPv6, "there is no IPv6 loopback address")) struct LocalhostTests {
    enum Family: CInt, CaseIterable {
        case four = 2
        case six = 10

        var loopback: String { self == .four ? "127.0.0.1" : "[::1]" }
    }

    /// The ways in which a machine lacks a family, by the failing call.
    enum Lack: CaseIterable { case noFamily, noAddress }

    private func take(_ family: Family, _ lack: Lack, from net: Network) {
        let real = net.kernel
        let isOf = { (address: UnsafePointer<sockaddr>) in CInt(address.pointee.sa_family) == family.rawValue }
        switch lack {
        case .noFamily:
            net.kernel.socket = { $0 == family.rawValue ? -Int(EAFNOSUPPORT) : real.socket($0, $1) }
        case .noAddress:
            net.kernel.bind = { isOf($1) ? -Int(EADDRNOTAVAIL) : real.bind($0, $1, $2) }
            net.kernel.startConnect = { isOf($1) ? -Int(EADDRNOTAVAIL) : real.startConnect($0, $1, $2) }
        }
    }

    @Test(.network, arguments: Family.allCases) func aServerOfEitherFamilyIsReached(family: Family) throws {
        let listener = try net.listen("\(family.loopback):0")
        let port = listener.localAddress.port
        for name in ["localhost", "LOCALHOST", "localhost.", "a.b.localhost", "Kiosk.LocalHost."] {
            let client = try hang(connect(to: "\(name):\(port)", lookup: TestLookup.forbidden), timeout: patience)
            expectEqual(client.peerAddress, listener.localAddress)
            client.abort()
        }
    }

    @Test(.listener) func namesThatOnlyResembleItAreLookedUp() throws {
        var asked: [String] = []
        let lookup = TestLookup { host, _ in
            asked.append(host)
            return .value([listener.localAddress])
        }
        let names = ["alocalhost", "localhost.example", "local.host", "ocalhost"]
        for name in names { try hang(connect(to: "\(name):1", lookup: lookup), timeout: patience).abort() }
        expectEqual(asked, names)
        for name in ["[localhost]", ".localhost", "a..localhost", "localhost..", "\u{600}.localhost"] {
            expect(connect(to: "\(name):1", lookup: lookup).error is SocketAddress.ParseError, name)
        }
    }

    @Test(.network, arguments: Family.allCases, Lack.allCases)
    func aMachineWithoutAFamilyUsesTheOther(family: Family, lack: Lack) throws {
        let other: Family = family == .four ? .six : .four
        let server = try net.listen("\(other.loopback):0")
        take(family, lack, from: net)
        let client = try hang(connect(to: "localhost:\(server.localAddress.port)"), timeout: patience)
        expectEqual(client.peerAddress, server.localAddress)
        let listener = try net.listen("localhost:0")
        expectEqual(listener.localAddresses.map(\.hostText), [server.localAddress.hostText])
    }

    @Test(.network) func aListenerHasBothWithOnePort() throws {
        let listener = try net.listen("localhost:0")
        let port = listener.localAddress.port
        expect(port != 0)
        expectEqual(listener.localAddresses.map(\.description), ["127.0.0.1:\(port)", "[::1]:\(port)"])
        for address in listener.localAddresses + [try SocketAddress("localhost:\(port)")] {
            let client = connect(to: address)
            try net.accept(from: listener).abort()
            try hang(client, timeout: patience).abort()
        }
    }

    @Test(.network) func aMachineWithNeitherSaysSo() throws {
        net.kernel.socket = { _, _ in -Int(EAFNOSUPPORT) }
        let error = #expect(throws: SystemError.self) { try net.listen("localhost:0") }
        expectEqual(error?.code, EAFNOSUPPORT)
        let failed = connect(to: "localhost:1")
        #expect(throws: ConnectError.self) { try hang(failed, timeout: patience) }
    }

    @Test(.network) func aPortThatTheOtherFamilyUsesIsNotTaken() throws {
        // A client would find another server there.
        let other = try net.listen("[::1]:0")
        let error = #expect(throws: SystemError.self) { try net.listen("localhost:\(other.localAddress.port)") }
        expectEqual(error?.code, EADDRINUSE)
        expectEqual(error?.detail, "\(other.localAddress)")
    }

    @Test(.network, arguments: [1, 15, 16]) func thenTheKernelIsAskedForAnotherPort(times: Int) throws {
        let real = net.kernel.bind
        var refused = 0
        net.kernel.bind = { fd, address, length in
            if CInt(address.pointee.sa_family) == AF_INET || refused == times { return real(fd, address, length) }
            refused += 1
            return -Int(EADDRINUSE)
        }
        if times == 16 {
            let error = #expect(throws: SystemError.self) { try net.listen("localhost:0") }
            expectEqual(error?.code, EADDRINUSE)
        } else {
            expectEqual(Set(try net.listen("localhost:0").localAddresses.map(\.port)).count, 1)
        }
        expectEqual(refused, times)
    }

    @Test(.network) func oneOfSeveralAddressesMayBeIt() throws {
        let listener = try Listener.bind(["localhost:0", "127.0.0.1:0"])
        expectEqual(listener.localAddresses.map(\.hostText), ["127.0.0.1", "::1", "127.0.0.1"])
        #expect(throws: SocketAddress.ParseError.self) { try Listener.bind(["localhost:0", "example.com:80"]) }
        let mode = #expect(throws: SystemError.self) { try Listener.bind("localhost:0", mode: 0o600) }
        expectEqual(mode?.code, EINVAL)
    }
}
