@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

struct BindErrorTests {
    @Test(.network, arguments: loopbacks) func aPortThatIsTaken(address: String) throws {
        let listener = try net.listen(address)
        let taken = listener.localAddress
        expect(taken.port != 0)
        let error = #expect(throws: SystemError.self) { try Listener.bind(taken) }
        expectEqual(error?.code, EADDRINUSE)
        expect("\(error!)".contains("\(taken)"))
        expectEqual(net.calls(.close), 1)
        expectEqual(net.ledger.open.count, 1)
    }

    @Test(.network, arguments: foreignAddresses) func anAddressThatIsNotThisMachines(address: String) throws {
        let error = #expect(throws: SystemError.self) { try Listener.bind(address) }
        expectEqual(error, SystemError(.bind, EADDRNOTAVAIL))
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

    @Test(.listener) func withoutARegistrationTheListenerEnds() throws {
        net.kernel.epollControl = { _, _, _, _ in -Int(EPERM) }
        let accepted = listener.accept()
        expect(accepted.error as? SystemError == SystemError(.epollControl, EPERM))
        expectEqual(code(listener.accept()), EBADF)
    }

    @Test(.network) func whatIsNoAddress() throws {
        #expect(throws: SocketAddress.ParseError.self) { try Listener.bind("7000") }
        #expect(throws: SocketAddress.ParseError.self) { try Listener.bind("::1:7000") }
        expectEqual(net.calls(.socket), 0)
    }
}
