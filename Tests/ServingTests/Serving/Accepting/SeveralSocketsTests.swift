@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

struct SeveralSocketsTests {
    @Test(.network) func allSocketsAreServedUnderOneLimit() throws {
        let folder = Folder()
        let listener = try Listener.bind(["127.0.0.1:0", "127.0.0.1:0", "unix:\(folder / "a")"])
        expectEqual(listener.localAddresses.count, 3)
        expectEqual(listener.localAddress, listener.localAddresses[0])
        let (gate, open) = Promise<Void>.pending()
        let served = listener.serve(ServeOptions(maxConnections: 2)) { connection in gate.then { echo(connection) } }
        let clients = try listener.localAddresses.map { address in
            let client = try Peer(to: address, sending: "x")
            client.end()
            return client
        }
        try net.loop.run(until: { listener.activeConnections == 2 })
        expect(net.turns { net.settle() } <= 6, "a listener that is full spins")
        expectEqual(listener.activeConnections, 2)
        open.fulfill()
        for client in clients {
            expectEqual(try hang(elsewhere { try client.readToEnd() }, timeout: patience), [0x78])
        }
        try listener.end(served)
        expect(folder.names.isEmpty)
    }

    @Test(.network) func ifOneCannotBeHadNoneIsKept() throws {
        let folder = Folder()
        let taken = try net.listen()
        let open = net.ledger.open
        let addresses = [folder.address("a"), try SocketAddress("127.0.0.1:0"), taken.localAddress]
        #expect(throws: SystemError(.bind, EADDRINUSE)) { try Listener.bind(addresses) }
        expectEqual(net.ledger.open, open)
        expect(folder.names.isEmpty)
        #expect(throws: SystemError(.bind, EINVAL)) { try Listener.bind([SocketAddress]()) }
    }

    @Test(.listener) func anInlineHandlerMayCancelAnotherAcceptWhenTheListenerIsClosed() throws {
        let accepts = (0..<3).map { _ in listener.accept() }
        // Only for this thread; the closure is Sendable because others may settle promises.
        nonisolated(unsafe) let last = accepts[2]
        nonisolated(unsafe) let closed = listener
        nonisolated(unsafe) var late: Promise<Connection>?
        accepts[0].pipe { _ in
            last.cancel()
            late = closed.accept()
        }
        listener.close()
        expectEqual(accepts.map(\.isPending), [false, false, false])
        expectEqual(accepts[2].error?.isCancelled, true)
        expectEqual(code(accepts[1]), ECANCELED)
        expectEqual(late.flatMap { code($0) }, EBADF)
    }

    private func opened(_ net: Network, _ address: SocketAddress, type: __socket_type = SOCK_STREAM) -> CInt {
        let fd = CInt(net.loop.kernel.socket(address.family, CInt(type.rawValue)))
        _ = address.withSocketAddress { net.loop.kernel.bind(fd, $0, $1) }
        return fd
    }

    @Test(.network) func aListeningSocketIsTakenOver() throws {
        let folder = Folder()
        let fd = opened(net, folder.address("a"))
        _ = net.loop.kernel.listen(fd, 10)
        let listener = try Listener(adopting: fd)
        expect(fcntl(fd, F_GETFD) & FD_CLOEXEC != 0)
        expect(fcntl(fd, F_GETFL) & O_NONBLOCK != 0)
        expectEqual(listener.localAddress, folder.address("a"))
        let client = try hang(connect(to: listener.localAddress), timeout: patience)
        try net.accept(from: listener).abort()
        client.abort()
        listener.close()
        expectEqual(folder.names, ["a"], "it is not ours")
    }

    @Test(.network) func whatDoesNotListenIsRefusedAndStaysTheCallers() throws {
        for type in [SOCK_STREAM, SOCK_DGRAM] {
            let fd = opened(net, .loopback(port: 0), type: type)
            let error = #expect(throws: SystemError.self) { try Listener(adopting: fd) }
            expectEqual(error?.code, EINVAL)
            expectEqual(error?.detail?.contains("descriptor \(fd)"), true)
            expect(net.ledger.open.contains(fd))
            net.loop.kernel.close(fd)
        }
        let folder = Folder()
        let packets = opened(net, folder.address("a"), type: SOCK_SEQPACKET)
        _ = net.loop.kernel.listen(packets, 1)
        #expect(throws: SystemError(.listen, EINVAL)) { try Listener(adopting: packets) }
        net.loop.kernel.close(packets)
    }

    @Test(.network) func thoseOfTheServiceManagerAreFoundByName() throws {
        let fds = (0..<3).map { _ in opened(net, .loopback(port: 0)) }
        for fd in fds { _ = net.loop.kernel.listen(fd, 10) }
        let named = zip(fds, ["web", "admin", "web"]).map { ServiceManager.Descriptor(number: $0, name: $1) }
        let web = try Listener.inherited(named: "web", named)
        expectEqual(web?.localAddresses.count, 2)
        expect(try Listener.inherited(named: "mail", named) == nil)
        let rest = try Listener.inherited(named: "admin", named)
        expectEqual(rest?.localAddresses.count, 1)
        rest?.close()
        web?.close()
    }
}
