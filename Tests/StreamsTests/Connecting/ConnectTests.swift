@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

struct ConnectTests {
    @Test(.network, arguments: loopbacks) func bothEndsKnowEachOtherAndRememberIt(address: String) throws {
        let listener = try net.listen(address)
        let client = try hang(connect(to: listener.localAddress, timeout: patience), timeout: patience)
        let server = try net.accept(from: listener)
        let (near, far) = (server.localAddress, client.localAddress)
        expectEqual([near, far], [listener.localAddress, server.peerAddress])
        expectEqual(client.peerAddress, listener.localAddress)
        let calls = net.calls(.getSocketName)
        server.abort()
        client.close()
        expectEqual([server.localAddress, client.localAddress], [near, far])
        expectEqual(net.calls(.getSocketName), calls)
        let (reader, writer) = try Connection.pipe()
        expectEqual([reader.localAddress, writer.localAddress], [nil, nil])
    }

    @Test(.network, arguments: loopbacks) func aClosedPortRefuses(loopback: String) throws {
        // The port stays bound as long as the process lives, and never has a listener.
        let local = try SocketAddress(loopback)
        let fd = socket(local.family, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        _ = local.withSocketAddress { bind(fd, $0, $1) }
        let target = try #require(address(of: fd, getsockname))
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
}
