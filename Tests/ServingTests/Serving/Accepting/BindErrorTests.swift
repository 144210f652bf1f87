@testable import PromisesTestSupport

struct BindErrorTests {
    @Test(arguments: loopbacks) func aPortThatIsTaken(address: String) throws {
        try withNetwork { net in
            let listener = try net.listen(address)
            let taken = listener.localAddress
            expect(taken.port != 0)
            let error = #expect(throws: SystemError.self) { try Listener.bind(taken) }
            expectEqual(error?.code, EADDRINUSE)
            expect("\(error!)".contains("\(taken)"))
            expectEqual(net.calls(.close), 1)
            expectEqual(net.ledger.open.count, 1)
        }
    }

    @Test(arguments: foreignAddresses) func anAddressThatIsNotThisMachines(address: String) throws {
        try withNetwork { _ in
            let error = #expect(throws: SystemError.self) { try Listener.bind(address) }
            expectEqual(error, SystemError(.bind, EADDRNOTAVAIL))
        }
    }

    @Test func aPrivilegedPort() throws {
        try withNetwork { net in
            // Root may.
            net.kernel.bind = { _, _, _ in -Int(EACCES) }
            let error = #expect(throws: SystemError.self) { try Listener.bind(.loopback(port: 80)) }
            expectEqual(error.map { "\($0)" }, "bind 127.0.0.1:80: Permission denied (EACCES)")
        }
    }

    @Test(.enabled(if: hasIPv6, "there is no IPv6 loopback address"))
    func everyStepThatFailsClosesTheSocket() throws {
        let refuse: [(inout Syscalls) -> Void] = [
            { $0.socket = { _, _ in -Int(EMFILE) } }, { $0.setSocketOption = { _, _, _, _, _ in -Int(ENOMEM) } },
            { $0.bind = { _, _, _ in -Int(EADDRINUSE) } }, { $0.listen = { _, _ in -Int(EADDRINUSE) } },
            { $0.getSocketName = { _, _ in -Int(ENOBUFS) } },
        ]
        for (refuse, call) in zip(refuse, [SystemCall.socket, .setSocketOption, .bind, .listen, .getSocketName]) {
            try withNetwork { net in
                refuse(&net.kernel)
                let error = #expect(throws: SystemError.self) { try net.listen("[::1]:0") }
                expectEqual(error?.call, call)
                expect(net.ledger.open.isEmpty)
            }
        }
    }

    @Test func withoutARegistrationTheListenerEnds() throws {
        try withListener { net, listener in
            net.kernel.epollControl = { _, _, _, _ in -Int(EPERM) }
            let accepted = listener.accept()
            expect(accepted.error as? SystemError == SystemError(.epollControl, EPERM))
            expectEqual(code(listener.accept()), EBADF)
        }
    }

    @Test func whatIsNoAddress() throws {
        try withNetwork { net in
            #expect(throws: SocketAddress.ParseError.self) { try Listener.bind("7000") }
            #expect(throws: SocketAddress.ParseError.self) { try Listener.bind("::1:7000") }
            expectEqual(net.calls(.socket), 0)
        }
    }

    @Test(.enabled(if: hasIPv6, "there is no IPv6 loopback address"))
    func anIPv6ListenerLeavesTheIPv4PortAlone() throws {
        try withNetwork { net in
            let six = try net.listen("[::1]:0")
            let client = try? Peer(to: .loopback(port: six.localAddress.port))
            #expect(client == nil)
        }
    }

    /// The end that closes first keeps the port in TIME_WAIT. Another process may take the number in between, so this
    /// is retried.
    @Test func aPortIsFreeAgainAsSoonAsItsListenerIsClosed() throws {
        try withNetwork { net in
            var failures: [any Error] = []
            for _ in 0..<3 {
                let listener = try net.listen()
                let address = listener.localAddress
                let client = try Peer(to: address)
                let connection = try net.accept(from: listener)
                listener.close()
                let closed = connection.close()
                expectEqual(try client.receive(), [])
                client.close()
                try hang(closed, timeout: patience)
                do {
                    try Listener.bind(address).close()
                    return
                } catch { failures.append(error) }
            }
            Issue.record("\(failures)")
        }
    }
}
