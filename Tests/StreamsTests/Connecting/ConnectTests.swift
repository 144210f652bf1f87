@testable import PromisesTestSupport

struct ConnectTests {
    @Test(arguments: loopbacks) func bothEndsKnowEachOther(address: String) throws {
        try withNetwork { net in
            let listener = try net.listen(address)
            let client = try hang(connect(to: listener.localAddress, timeout: patience), timeout: patience)
            let server = try net.accept(from: listener)
            expectEqual(client.peerAddress, listener.localAddress)
            expectEqual(server.localAddress, listener.localAddress)
            expectEqual(server.peerAddress, client.localAddress)
            try hang(client.write("hello"), timeout: patience)
            expectEqual(try hang(server.receive(), timeout: patience), Array("hello".utf8))
        }
    }

    @Test(arguments: loopbacks) func aClosedPortRefuses(address: String) throws {
        try withNetwork { net in
            let target = try closedPort(address)
            let attempt = connect(to: target)
            var settled = 0
            attempt.tap { _ in settled += 1 }.catch { _ in }
            expectEqual(try rejection(of: attempt), ECONNREFUSED)
            net.settle()
            expectEqual(settled, 1)
            expect("\(attempt.error!)".contains("connect \(target)"))
        }
    }

    @Test func aBlackHoleTimesOutAndLateSuccessIsIgnored() throws {
        try withNetwork(clock: VirtualClock()) { net in
            let hole = try net.listen(backlog: 0)
            let filler = try Peer(to: hole.localAddress)
            let begin = net.loop.now
            let attempt = connect(to: hole.localAddress, timeout: .milliseconds(100))
            #expect(throws: PromiseError.timedOut) { try hang(attempt) }
            expectEqual(begin.duration(to: net.loop.now), .milliseconds(100))
            let closes = net.calls(.close)
            expectEqual(closes, 1, "the attempt's")
            try hang(hole.accept())
            net.settle(.seconds(5))
            #expect(throws: PromiseError.timedOut) { try hang(attempt) }
            expectEqual(net.calls(.close), closes + 1, "the accepted connection's")
            filler.close()
        }
    }

    @Test func aConnectThatSucceedsCancelsItsTimeout() throws {
        try withListener(clock: VirtualClock()) { net, listener in
            let attempt = connect(to: listener.localAddress, timeout: .seconds(1))
            let connection = try hang(attempt)
            net.settle(.seconds(5))
            expectEqual(net.loop.metrics.timersFired, 1)
            try hang(connection.write("x"))
        }
    }

    @Test func aSocketThatMeetsItselfIsRefused() throws {
        try withNetwork { net in
            let own = socket(AF_INET, CInt(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
            var name = sockaddr_storage()
            _ = SocketAddress.loopback(port: 0).withSocketAddress { bind(own, $0, $1) }
            _ = net.kernel.getSocketName(own, &name)
            net.kernel.socket = { _, _ in Int(own) }
            let address = try #require(SocketAddress(name))
            expectEqual(try rejection(of: connect(to: address, timeout: patience)), ECONNREFUSED)
        }
    }

    @Test func aConnectThatASignalInterruptsGoesOn() throws {
        try withListener { net, listener in
            let real = net.kernel.startConnect
            net.kernel.startConnect = {
                _ = real($0, $1, $2)
                return -Int(EINTR)
            }
            let client = try hang(connect(to: listener.localAddress), timeout: patience)
            try hang(client.write("x"), timeout: patience)
            expectEqual(net.calls(.connect), 1)
        }
    }

    @Test(arguments: [ENETUNREACH, EACCES, EADDRNOTAVAIL]) func whatTheKernelRefusesAtOnceIsReported(code refusal: CInt)
        throws
    {
        try withNetwork { net in
            net.kernel.startConnect = { _, _, _ in -Int(refusal) }
            expectEqual(code(connect(to: .loopback(port: 1))), refusal)
            expectEqual(net.calls(.close), 1)
        }
    }

    @Test func withoutDescriptorsOrRegistrationItFails() throws {
        try withNetwork { net in
            let real = net.kernel
            net.kernel.socket = { _, _ in -Int(EMFILE) }
            let first = connect(to: .loopback(port: 1))
            expect(first.error as? SystemError == SystemError(.socket, EMFILE))
            net.kernel.socket = real.socket
            net.kernel.epollControl = { _, _, _, _ in -Int(EPERM) }
            let second = connect(to: .loopback(port: 1))
            expect(second.error as? SystemError == SystemError(.epollControl, EPERM))
        }
    }

    /// The loop opens its own descriptors with the first socket, before the others use up the rest.
    @Test func thoseThatFindNoDescriptorFailAndTheOthersGoOn() throws {
        try withNetwork { net in
            let real = net.kernel
            let opened = { [unowned ledger = net.ledger] (open: () -> Int) in
                ledger.open.count < 8 ? open() : -Int(EMFILE)
            }
            net.kernel.socket = { family, type in opened { real.socket(family, type) } }
            net.kernel.epollCreate = { opened(real.epollCreate) }
            net.kernel.eventCreate = { opened(real.eventCreate) }
            net.kernel.timerCreate = { opened(real.timerCreate) }
            let address = try closedPort("127.0.0.1:0")
            let all = (0..<20).map { _ in connect(to: address) }
            let results = try hang(when(resolved: all).asPromise())
            let codes = results.map { result -> CInt? in
                guard case .failure(let error as SystemError) = result else { return nil }
                return error.code
            }
            #expect(codes == Array(repeating: ECONNREFUSED, count: 5) + Array(repeating: EMFILE, count: 15))
        }
    }

    @Test func whatIsNoAddressIsRejected() throws {
        try withNetwork { net in
            expect(connect(to: "nonsense").error is SocketAddress.ParseError)
            expect(connect(to: "example.com:port").error is SocketAddress.ParseError)
            expectEqual(net.calls(.socket), 0)
        }
    }
}

/// An address that never has a listener: the port stays bound as long as the process lives.
private func closedPort(_ text: String) throws -> SocketAddress {
    let address = try SocketAddress(text)
    let fd = socket(address.family, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    _ = address.withSocketAddress { bind(fd, $0, $1) }
    var name = sockaddr_storage()
    _ = CountingSyscalls().getSocketName(fd, &name)
    return try #require(SocketAddress(name))
}
