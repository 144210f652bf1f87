@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

struct DatagramCloseTests {
    @Test(.network) func whatCannotBeMade() throws {
        #expect(throws: SystemError(.bind, EADDRNOTAVAIL)) { try DatagramSocket.bind("198.51.100.1:0") }
        #expect(throws: SystemError(.bind, EAFNOSUPPORT)) { try DatagramSocket.bind("unix:/tmp/a") }
        #expect(throws: SocketAddress.ParseError.self) { try DatagramSocket.bind("example.com:80") }
        #expect(throws: SocketAddress.ParseError.self) { try DatagramSocket.connect(to: "example.com:80") }
        #expect(throws: SystemError(.bind, EAFNOSUPPORT)) { try DatagramSocket.connect(to: "unix:/tmp/a") }
        let two = ["127.0.0.1:0", "127.0.0.2:0"]
        #expect(throws: SystemError(.bind, EINVAL)) { try DatagramSocket.bind(two) }
        #expect(throws: SystemError(.connect, EINVAL)) { try DatagramSocket.connect(to: two) }
        for size in [0, -1, 65536, .max] {
            let error = #expect(throws: SystemError.self) {
                try DatagramSocket.bind("127.0.0.1:0", packetSize: size)
            }
            expectEqual(error?.code, EINVAL)
            expectEqual(error?.detail?.contains("packetSize: \(size)"), true)
        }
        let one = try DatagramSocket.bind("127.0.0.1:0")
        #expect(throws: SystemError(.bind, EADDRINUSE)) { try DatagramSocket.bind(one.localAddress!) }
        expectEqual(net.ledger.open.count, 1)
    }

    @Test(.network) func optionsAreSetBeforeItIsBound() throws {
        let shared: [SocketSetting] = [.set(.reusePort, to: true), .set(broadcasting, to: 1)]
        let one = try DatagramSocket.bind("127.0.0.1:0", options: shared)
        let other = try DatagramSocket.bind(one.localAddress!, options: shared)
        expect(try other.value(of: broadcasting) == 1)
        for (option, value) in [(IP_MULTICAST_TTL, 3), (IP_MULTICAST_LOOP, 0)] {
            let option = SocketOption(level: CInt(IPPROTO_IP), name: option)
            try one.set(option, to: value)
            expectEqual(try one.value(of: option), value)
        }
    }

    @Test(.network) func thereIsOneReceptionAtATimeAndACancelledOneLeavesWhatComes() throws {
        let socket = try DatagramSocket.bind("127.0.0.1:0")
        let first = socket.receive()
        expectEqual(code(socket.receive()), EBUSY)
        expectEqual(code(socket.forEachPacket { _, _ in }), EBUSY)
        expectEqual(code(socket.receive(upTo: 0)), EINVAL)
        first.cancel()
        let second = socket.forEachPacket { _, _ in Issue.record("it was cancelled") }
        expectEqual(code(socket.receive()), EBUSY)
        try hang(socket.send([1], to: socket.localAddress), timeout: patience)
        second.cancel()
        expect(net.turns { net.settle() } <= 6)
        expectEqual(try hang(socket.receive(), timeout: patience).map(\.bytes), [[1]])
    }

    @Test(.network) func closeEndsWhatWaitsAndRefusesWhatComes() throws {
        let socket = try DatagramSocket.bind("127.0.0.1:0")
        net.kernel.sendMessages = { _, _, _ in -Int(EAGAIN) }
        let reception = socket.receive()
        let send = socket.send([1], to: socket.localAddress)
        socket.close()
        socket.close()
        expect(code(reception) == ECANCELED && code(send) == ECANCELED)
        let calls = net.loop.metrics.systemCalls
        expectEqual(code(socket.receive()), EBADF)
        expectEqual(code(socket.forEachPacket { _, _ in }), EBADF)
        expectEqual(code(socket.send([1])), EBADF)
        expectEqual(code(socket.send([Datagram([1])])), EBADF)
        #expect(throws: SystemError(.setSocketOption, EBADF)) { try socket.set(broadcasting, to: 1) }
        #expect(throws: SystemError(.getSocketOption, EBADF)) { try socket.value(of: broadcasting) }
        expectEqual(net.loop.metrics.systemCalls, calls)
        expect(socket.isClosed)
    }

    @Test(.network) func itsReleaseClosesItUnlessItWaits() throws {
        var socket: DatagramSocket? = try DatagramSocket.bind("127.0.0.1:0")
        let address = socket?.localAddress
        let reception = socket!.receive()
        socket = nil
        expect(net.ledger.open.count >= 1 && reception.isPending)
        let other = try DatagramSocket.bind("127.0.0.1:0")
        try hang(other.send([7], to: address), timeout: patience)
        expectEqual(try hang(reception, timeout: patience).map(\.bytes), [[7]])
    }

    @Test func theLoopEndsWhileTheyWait() throws {
        var reception: Promise<[Datagram]>?
        var each: Promise<Void>?
        try withNetwork { _ in
            reception = try DatagramSocket.bind("127.0.0.1:0").receive()
            each = try DatagramSocket.bind("127.0.0.1:0").forEachPacket { _, _ in }
        }
        expectEqual(reception.flatMap { code($0) }, ECANCELED)
        expectEqual(each.flatMap { code($0) }, ECANCELED)
    }

    /// The poller has no entry for a receive of packets that are already here.
    @Test func theLoopEndsWhilePacketsAreLeftOver() throws {
        var again: Promise<Void>?
        try withNetwork { net in
            let socket = try DatagramSocket.bind("127.0.0.1:0")
            for number in UInt8(1)...3 { try hang(socket.send([number], to: socket.localAddress), timeout: patience) }
            var seen = 0
            var each: Promise<Void>?
            each = socket.forEachPacket { _, _ in
                seen += 1
                each?.cancel()
            }
            net.settle()
            expectEqual(seen, 1)
            again = socket.forEachPacket { _, _ in }
        }
        expectEqual(again.flatMap { code($0) }, ECANCELED)
    }

    @Test(.network) func oneSendOfVeryManyLeavesTimeForOthers() throws {
        let socket = try DatagramSocket.bind("127.0.0.1:0")
        let packets = (0..<1000).map { Datagram([UInt8($0 & 255)], to: socket.localAddress) }
        let send = socket.send(packets)
        expect(net.calls(.sendMessages) <= 16 && send.isPending)
        expectEqual(try hang(send, timeout: patience), 1000)
    }

    @Test(.network) func withoutARegistrationAReceptionFails() throws {
        let socket = try DatagramSocket.bind("127.0.0.1:0")
        net.kernel.epollControl = { _, _, _, _ in -Int(EPERM) }
        expectEqual(code(socket.receive()), EPERM)
    }
}
