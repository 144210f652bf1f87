@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

func tcpOption(_ name: CInt) -> SocketOption<Int> { SocketOption(level: CInt(IPPROTO_TCP), name: name) }

struct SocketOptionTests {
    /// The kernel's own view, not through the library.
    private func raw(_ fd: CInt, _ level: CInt, _ option: CInt) -> CInt {
        var value: CInt = -1
        var length = socklen_t(MemoryLayout<CInt>.size)
        getsockopt(fd, level, option, &value, &length)
        return value
    }

    @Test(.pair) func whatIsSetIsWhatTheKernelHas() throws {
        let fd = net.ledger.accepted[0]
        expect(try connection.value(of: .noDelay))
        try connection.set(.noDelay, to: false)
        expect(try !connection.value(of: .noDelay))
        try connection.set(.keepAlive, to: true)
        try connection.set(tcpOption(TCP_KEEPIDLE), to: 30)
        try connection.set(.sendBuffer, to: 10_000)
        try connection.set(.receiveBuffer, to: 20_000)
        expect(try connection.value(of: .keepAlive))
        expectEqual(try connection.value(of: tcpOption(TCP_KEEPIDLE)), 30)
        expectEqual(try connection.value(of: .sendBuffer), 20_000, "the kernel doubles it")
        expectEqual(try connection.value(of: .receiveBuffer), 40_000)
        expectEqual(raw(fd, CInt(IPPROTO_TCP), TCP_KEEPIDLE), 30)
    }

    @Test(.pair) func aValueThatItCannotHaveIsNamed() throws {
        let calls = net.calls(.setSocketOption)
        for size in [Int.min, -1, .max, Int(CInt.max) + 1] {
            for (option, name) in [(SocketOption.sendBuffer, "SO_SNDBUF"), (.receiveBuffer, "SO_RCVBUF")] {
                let error = #expect(throws: SystemError.self) { try connection.set(option, to: size) }
                expectEqual(error?.code, EINVAL)
                expectEqual(error?.detail, "\(name): \(size), which takes 0 to 2147483647")
            }
            if size == -1 { continue }
            let error = #expect(throws: SystemError.self) { try connection.set(tcpOption(TCP_KEEPCNT), to: size) }
            expectEqual(error?.detail, "option 6 of level 6: \(size), which takes -2147483648 to 2147483647")
        }
        expectEqual(net.calls(.setSocketOption), calls, "the kernel was not asked")
        let count = #expect(throws: SystemError.self) { try connection.set(tcpOption(TCP_KEEPCNT), to: 128) }
        expectEqual(count?.code, EINVAL)
        expectEqual(count?.detail, "option 6 of level 6: 128")
    }

    /// Its number may belong to another file by then.
    @Test(.pair) func afterTheEndTheNumberIsNotTouched() throws {
        let (_, writer) = try Connection.pipe()
        try hang(writer.shutdownWrite(), timeout: patience)
        connection.abort()
        let calls = net.loop.metrics.systemCalls
        for ended in [connection, writer] {
            #expect(throws: SystemError(.setSocketOption, EBADF)) { try ended.set(.noDelay, to: true) }
            #expect(throws: SystemError(.getSocketOption, EBADF)) { try ended.value(of: .noDelay) }
        }
        expectEqual(net.loop.metrics.systemCalls, calls)
    }

    @Test(.listener) func aConnectHasThemFromTheStart() throws {
        let options: [SocketSetting] = [
            .set(.noDelay, to: false), .set(.receiveBuffer, to: 10_000),
            .set(tcpOption(TCP_USER_TIMEOUT), to: 9000),
        ]
        let real = net.kernel.startConnect
        var bufferAtConnect: CInt = 0
        net.kernel.startConnect = {
            bufferAtConnect = raw($0, SOL_SOCKET, SO_RCVBUF)
            return real($0, $1, $2)
        }
        let client = try hang(connect(to: listener.localAddress, options: options), timeout: patience)
        expectEqual(bufferAtConnect, 20_000)
        expectEqual(try client.value(of: tcpOption(TCP_USER_TIMEOUT)), 9000)
        expect(try !client.value(of: .noDelay))
    }

    /// Options that every listener has may be turned off.
    @Test(.network, .enabled(if: hasIPv6, "there is no IPv6 loopback address"))
    func anIPv6ListenerMayTakeTheIPv4PortToo() throws {
        let ipv6Only = SocketOption(level: CInt(IPPROTO_IPV6), name: IPV6_V6ONLY)
        let listener = try Listener.bind("[::]:0", options: [.set(ipv6Only, to: 0)])
        let port = listener.localAddress.port
        for host in ["127.0.0.1", "[::1]"] {
            let client = connect(to: try SocketAddress("\(host):\(port)"))
            let accepted = try net.accept(from: listener)
            // The kernel writes IPv4 addresses in the form of IPv6.
            expectEqual(accepted.peerAddress?.hostText, host == "[::1]" ? "::1" : "::ffff:127.0.0.1")
            accepted.abort()
            try hang(client, timeout: patience).abort()
        }
        let error = #expect(throws: SystemError.self) { try Listener.bind("127.0.0.1:\(port)") }
        expectEqual(error?.code, EADDRINUSE)
        // Another program may have a port in IPv4 that the kernel has chosen in IPv6.
        var beside: Listener?
        while beside == nil {
            let only = try net.listen("[::]:0")
            do {
                beside = try net.listen("0.0.0.0:\(only.localAddress.port)")
                expectEqual(beside?.localAddress.port, only.localAddress.port)
            } catch let error as SystemError { expectEqual(error.code, EADDRINUSE) }
        }
    }

    @Test(.network, arguments: [true, false]) func aPortMayBeBoundWhileConnectionsOfAPredecessorAreClosing(isOn: Bool)
        throws
    {
        let first = try net.listen()
        let client = connect(to: first.localAddress)
        let accepted = try net.accept(from: first)
        // The side that closes first keeps the address for a minute, in TIME_WAIT.
        let closed = accepted.close()
        let peer = try hang(client, timeout: patience)
        expectEqual(try hang(peer.receive(), timeout: patience), [])
        peer.close()
        hang(closed)
        first.close()
        func second() throws -> Listener {
            let reuse = SocketOption(level: SOL_SOCKET, name: SO_REUSEADDR)
            return try Listener.bind(first.localAddress, options: [.set(reuse, to: isOn ? 1 : 0)])
        }
        if isOn { return try second().close() }
        #expect(throws: SystemError(.bind, EADDRINUSE)) { try second() }
    }

    @Test(.network) func aListenerHasThemBeforeItIsBound() throws {
        let shared: [SocketSetting] = [.set(.reusePort, to: true)]
        let first = try Listener.bind("127.0.0.1:0", options: shared)
        let second = try Listener.bind(first.localAddress, options: shared)
        #expect(throws: SystemError(.bind, EADDRINUSE)) { try Listener.bind(first.localAddress) }
        second.close()
        first.close()
        let wrong: [SocketSetting] = [.set(tcpOption(TCP_KEEPCNT), to: 1000)]
        let open = net.ledger.open
        #expect(throws: SystemError(.setSocketOption, EINVAL)) {
            try Listener.bind("127.0.0.1:0", options: wrong)
        }
        expectEqual(code(connect(to: .loopback(port: 1), options: wrong)), EINVAL)
        expectEqual(net.ledger.open, open)
    }
}
