import Glibc

@testable import PromisesTestSupport

@Suite struct SocketOptionTests {
    /// The kernel's own view, not through the library.
    private func raw(_ fd: CInt, _ level: CInt, _ option: CInt) -> CInt {
        var value: CInt = -1
        var length = socklen_t(MemoryLayout<CInt>.size)
        getsockopt(fd, level, option, &value, &length)
        return value
    }

    @Test func whatIsSetIsWhatTheKernelHas() throws {
        try withPair { net, connection, _ in
            let fd = net.ledger.accepted[0]
            expect(try connection.value(of: .noDelay))
            try connection.set(.noDelay, to: false)
            expect(try !connection.value(of: .noDelay))
            try connection.set(.keepAlive, to: true)
            try connection.set(.keepAliveIdle, to: .seconds(30))
            try connection.set(.keepAliveInterval, to: .milliseconds(1))
            try connection.set(.keepAliveCount, to: 3)
            try connection.set(.userTimeout, to: .microseconds(1_500_001))
            try connection.set(.notSentLowWater, to: 16384)
            try connection.set(.sendBuffer, to: 10_000)
            try connection.set(.receiveBuffer, to: 20_000)
            expect(try connection.value(of: .keepAlive))
            expectEqual(try connection.value(of: .keepAliveIdle), .seconds(30))
            expectEqual(try connection.value(of: .keepAliveInterval), .seconds(1), "rounded up")
            expectEqual(try connection.value(of: .keepAliveCount), 3)
            expectEqual(try connection.value(of: .userTimeout), .milliseconds(1501), "rounded up")
            expectEqual(try connection.value(of: .notSentLowWater), 16384)
            expectEqual(try connection.value(of: .sendBuffer), 20_000, "the kernel doubles it")
            expectEqual(try connection.value(of: .receiveBuffer), 40_000)
            expectEqual(raw(fd, CInt(IPPROTO_TCP), TCP_KEEPIDLE), 30)
            expectEqual(raw(fd, CInt(IPPROTO_TCP), TCP_USER_TIMEOUT), 1501)
            expectEqual(raw(fd, CInt(IPPROTO_TCP), TCP_NOTSENT_LOWAT), 16384)
        }
    }

    @Test func aValueThatItCannotHaveIsNamed() throws {
        try withPair { net, connection, _ in
            let calls = net.calls(.setSocketOption)
            func refused(_ body: () throws(SystemError) -> Void) -> String? {
                do throws(SystemError) { try body() } catch {
                    return error == SystemError(.setSocketOption, EINVAL) ? error.detail : "\(error)"
                }
                return nil
            }
            let tooLong = refused { () throws(SystemError) in try connection.set(.keepAliveIdle, to: .seconds(32768)) }
            expectEqual(tooLong, "TCP_KEEPIDLE: 32768.0 seconds, which takes 1 to 32767 seconds")
            let none = refused { () throws(SystemError) in try connection.set(.keepAliveInterval, to: .zero) }
            expectEqual(none?.contains("TCP_KEEPINTVL"), true)
            let negative = refused { () throws(SystemError) in try connection.set(.userTimeout, to: .seconds(-1)) }
            expectEqual(negative?.contains("-1.0 seconds"), true)
            let endless = refused { () throws(SystemError) in
                try connection.set(.userTimeout, to: .seconds(Int64.max))
            }
            expect(endless != nil)
            for count in [0, 128, -1, .min, .max] {
                let text = refused { () throws(SystemError) in try connection.set(.keepAliveCount, to: count) }
                expectEqual(text?.contains("TCP_KEEPCNT: \(count)"), true)
            }
            for size in [0, -1, .min, .max] {
                let text = refused { () throws(SystemError) in try connection.set(.sendBuffer, to: size) }
                expectEqual(text?.contains("SO_SNDBUF: \(size)"), true)
            }
            expectEqual(net.calls(.setSocketOption), calls, "the kernel was not asked")
        }
    }

    @Test func anOptionOfAnotherKindOfSocketIsTheKernelsRefusal() throws {
        let folder = Folder()
        try withNetwork { net in
            let listener = try net.listen("unix:\(folder / "a")")
            let connection = try hang(connect(to: listener.localAddress), timeout: patience)
            let error = #expect(throws: SystemError.self) { try connection.set(.keepAliveCount, to: 3) }
            expectEqual(error?.code, EOPNOTSUPP)
            expectEqual(error?.detail, "TCP_KEEPCNT: 3")
            try connection.set(.sendBuffer, to: 8192)
            expectEqual(try connection.value(of: .sendBuffer), 16384)
        }
    }

    @Test func afterTheEndTheNumberIsNotTouched() throws {
        try withPair { net, connection, _ in
            connection.abort()
            let calls = (net.calls(.setSocketOption), net.calls(.getSocketOption))
            #expect(throws: SystemError(.setSocketOption, EBADF)) { try connection.set(.noDelay, to: true) }
            #expect(throws: SystemError(.getSocketOption, EBADF)) { try connection.value(of: .noDelay) }
            #expect(calls == (net.calls(.setSocketOption), net.calls(.getSocketOption)))
        }
    }

    @Test func aConnectHasThemFromTheStart() throws {
        try withListener { net, listener in
            let options: [SocketSetting] = [
                .set(.noDelay, to: false), .set(.receiveBuffer, to: 10_000), .set(.userTimeout, to: .seconds(9)),
            ]
            let real = net.kernel.startConnect
            var bufferAtConnect: CInt = 0
            net.kernel.startConnect = {
                bufferAtConnect = raw($0, SOL_SOCKET, SO_RCVBUF)
                return real($0, $1, $2)
            }
            let client = try hang(connect(to: listener.localAddress, options: options), timeout: patience)
            expectEqual(bufferAtConnect, 20_000)
            expectEqual(try client.value(of: .userTimeout), .seconds(9))
            expect(try !client.value(of: .noDelay))
        }
    }

    /// Options that every listener has may be turned off.
    @Test(.enabled(if: hasIPv6, "there is no IPv6 loopback address"))
    func anIPv6ListenerMayTakeTheIPv4PortToo() throws {
        try withNetwork { net in
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
            let only = try net.listen("[::]:0")
            let beside = try net.listen("0.0.0.0:\(only.localAddress.port)")
            expectEqual(beside.localAddress.port, only.localAddress.port)
        }
    }

    @Test(arguments: [true, false]) func aPortMayBeBoundWhileConnectionsOfAPredecessorAreClosing(isOn: Bool) throws {
        try withNetwork { net in
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
    }

    @Test func aListenerHasThemBeforeItIsBound() throws {
        try withNetwork { net in
            let shared: [SocketSetting] = [.set(.reusePort, to: true)]
            let first = try Listener.bind("127.0.0.1:0", options: shared)
            let second = try Listener.bind(first.localAddress, options: shared)
            #expect(throws: SystemError(.bind, EADDRINUSE)) { try Listener.bind(first.localAddress) }
            second.close()
            first.close()
            let wrong: [SocketSetting] = [.set(.keepAliveCount, to: 1000)]
            let open = net.ledger.open
            #expect(throws: SystemError(.setSocketOption, EINVAL)) {
                try Listener.bind("127.0.0.1:0", options: wrong)
            }
            expectEqual(code(connect(to: .loopback(port: 1), options: wrong)), EINVAL)
            expectEqual(net.ledger.open, open)
        }
    }
}
