@testable import PromisesTestSupport

struct ConnectTests {
    @Test(.network, arguments: loopbacks) func bothEndsKnowEachOther(address: String) throws {
        let listener = try net.listen(address)
        let client = try hang(connect(to: listener.localAddress, timeout: patience), timeout: patience)
        let server = try net.accept(from: listener)
        expectEqual(client.peerAddress, listener.localAddress)
        expectEqual(server.localAddress, listener.localAddress)
        expectEqual(server.peerAddress, client.localAddress)
        try hang(client.write("hello"), timeout: patience)
        expectEqual(try hang(server.receive(), timeout: patience), Array("hello".utf8))
    }

    @Test(.network, arguments: loopbacks) func aClosedPortRefuses(address: String) throws {
        let target = try closedPort(address)
        let attempt = connect(to: target)
        var settled = 0
        attempt.tap { _ in settled += 1 }.catch { _ in }
        expectEqual(try rejection(of: attempt), ECONNREFUSED)
        net.settle()
        expectEqual(settled, 1)
        expect("\(attempt.error!)".contains("connect \(target)"))
    }

    @Test(.listener(.virtual)) func aConnectThatSucceedsCancelsItsTimeout() throws {
        let attempt = connect(to: listener.localAddress, timeout: .seconds(1))
        let connection = try hang(attempt)
        net.settle(.seconds(5))
        expectEqual(net.loop.metrics.timersFired, 1)
        try hang(connection.write("x"))
    }

    @Test(.network) func aSocketThatMeetsItselfIsRefused() throws {
        let own = socket(AF_INET, CInt(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var name = sockaddr_storage()
        _ = SocketAddress.loopback(port: 0).withSocketAddress { bind(own, $0, $1) }
        _ = net.kernel.getSocketName(own, &name)
        net.kernel.socket = { _, _ in Int(own) }
        let address = try #require(SocketAddress(name))
        expectEqual(try rejection(of: connect(to: address, timeout: patience)), ECONNREFUSED)
    }

    @Test(.listener) func aConnectThatASignalInterruptsGoesOn() throws {
        let real = net.kernel.startConnect
        net.kernel.startConnect = {
            _ = real($0, $1, $2)
            return -Int(EINTR)
        }
        let client = try hang(connect(to: listener.localAddress), timeout: patience)
        try hang(client.write("x"), timeout: patience)
        expectEqual(net.calls(.connect), 1)
    }

    @Test(
        .network,
        arguments: [
            (.connect, ENETUNREACH), (.connect, EACCES), (.connect, EADDRNOTAVAIL), (.socket, EMFILE),
            (.epollControl, EPERM),
        ] as [(SystemCall, CInt)])
    func whatTheKernelRefusesAtOnceIsReported(call: SystemCall, refusal: CInt) throws {
        switch call {
        case .socket: net.kernel.socket = { _, _ in -Int(refusal) }
        case .connect: net.kernel.startConnect = { _, _, _ in -Int(refusal) }
        default: net.kernel.epollControl = { _, _, _, _ in -Int(refusal) }
        }
        expectEqual(connect(to: .loopback(port: 1)).error as? SystemError, SystemError(call, refusal))
        if call == .connect { expectEqual(net.calls(.close), 1) }
    }

    /// The loop opens its own descriptors with the first socket, before the others use up the rest.
    @Test(.network) func thoseThatFindNoDescriptorFailAndTheOthersGoOn() throws {
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
        expectEqual(codes, Array(repeating: ECONNREFUSED, count: 5) + Array(repeating: EMFILE, count: 15))
    }

    @Test(.network) func whatIsNoAddressIsRejected() throws {
        expect(connect(to: "nonsense").error is SocketAddress.ParseError)
        expect(connect(to: "example.com:port").error is SocketAddress.ParseError)
        expectEqual(net.calls(.socket), 0)
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
