#if TLS
import Synchronization

/// Listeners and connects with TLS.
struct ServeTLSTests {
    @Test(arguments: [true, false]) func everyFormOfServeAnswers(isSecure: Bool) throws {
        let server = isSecure ? try TLSServer(serverConfiguration()) : nil
        let group = try LoopGroup(loops: 2, name: "tls")
        defer {
            group.stop()
            group.join()
        }
        for form in 0..<4 {
            try withNetwork { net in
                let listener = try Listener.bind("127.0.0.1:0")
                let served: Promise<DrainResult>
                switch form {
                case 0: served = listener.serve(.tls(server)) { echoLines($0) }
                case 1: served = listener.serve(on: group, .tls(server)) { echoLines($0) }
                case 2:
                    served = listener.serve(ServeOptions(stopSignals: [SIGWINCH], drainTimeout: patience).tls(server)) {
                        echoLines($0)
                    }
                default:
                    served = listener.serve(
                        on: group, ServeOptions(stopSignals: [SIGWINCH], drainTimeout: patience).tls(server)
                    ) { echoLines($0) }
                }
                let address = "localhost:\(listener.localAddress.port)"
                try converse(with: address, isSecure ? try TLSClient(clientConfiguration()) : nil)
                listener.close()
                try hang(served, timeout: patience)
            }
        }
    }

    @Test(.ownThread, arguments: [false, true], [false, true])
    func asyncHandlersAreServed(onGroup: Bool, isSecure: Bool) throws {
        let server = isSecure ? try TLSServer(serverConfiguration()) : nil
        let group = try LoopGroup(loops: 1, name: "tls")
        defer {
            group.stop()
            group.join()
        }
        try withNetwork { net in
            let listener = try Listener.bind("127.0.0.1:0")
            let served =
                onGroup
                ? listener.serveAsync(on: group, .tls(server)) { connection async throws in
                    for try await line in connection.lines { try await connection.write(line + "\n").value }
                }
                : listener.serveAsync(.tls(server)) { connection async throws in
                    for try await line in connection.lines { try await connection.write(line + "\n").value }
                }
            let client = isSecure ? try TLSClient(clientConfiguration()) : nil
            try converse(with: "localhost:\(listener.localAddress.port)", client)
            listener.close()
            try hang(served, timeout: patience)
        }
    }

    @Test(.tls) func aFailedHandshakeIsReportedAndHarmsNoOther() throws {
        let listener = try Listener.bind("127.0.0.1:0")
        var errors: [any Error] = []
        let served = listener.serve(
            .tls(try TLSServer(serverConfiguration())), onError: { error, _ in errors.append(error) }
        ) { echoLines($0) }
        let plain = try hang(connect(to: listener.localAddress), timeout: patience)
        try hang(plain.write("GET / HTTP/1.0\r\n\r\n"), timeout: patience)
        _ = try hang(readToEnd(plain), timeout: patience)
        hang(plain.close())
        let stranger = connect(
            to: listener.localAddress,
            tls: try TLSClient(clientConfiguration { $0.trustRoots = .pem(Certificates.shared.stranger) }))
        expectEqual(try cause(of: stranger), .certificate(.unknownAuthority))
        try converse(with: "localhost:\(listener.localAddress.port)", try TLSClient(clientConfiguration()))
        try net.loop.run(until: { errors.count == 2 })
        expect(errors.allSatisfy { ($0 as? TLSError)?.peer != nil })
        listener.close()
        try hang(served, timeout: patience)
    }

    @Test(.tls) func theNameIsThatOfTheAddressUnlessAnotherIsGiven() throws {
        let listener = try Listener.bind("127.0.0.1:0")
        var names: [String?] = []
        let served = listener.serve(.tls(try TLSServer(serverConfiguration()))) { connection in
            names.append(connection.requestedServerName)
            return echoLines(connection)
        }
        let client = try TLSClient(clientConfiguration())
        let (port, address) = (listener.localAddress.port, listener.localAddress)
        let connects = [
            connect(to: "localhost:\(port)", tls: client), connect(to: "127.0.0.1:\(port)", tls: client),
            connect(to: "127.0.0.1:\(port)", tls: client, serverName: "localhost"),
            connect(to: address, tls: client), connect(to: address, tls: client, serverName: "a.example.test"),
        ]
        for connection in try hang(when(fulfilled: connects), timeout: patience) { connection.close() }
        try net.loop.run(until: { names.count == 5 })
        expectEqual(Set(names), ["localhost", "a.example.test", nil])
        let wrong = connect(to: "127.0.0.1:\(port)", tls: client, serverName: "wrong.test")
        expectEqual(try cause(of: wrong), .certificate(.wrongName))
        listener.close()
        try hang(served, timeout: patience)
    }

    @Test(.tls) func aCancelledConnectEndsItsHandshake() throws {
        let listener = try Listener.bind("127.0.0.1:0")
        let connecting = connect(to: listener.localAddress, tls: try TLSClient(clientConfiguration()))
        let silent = try hang(listener.accept(), timeout: patience)
        expectEqual(try hang(silent.receive(), timeout: patience).first, 22, "its first message")
        connecting.cancel()
        expect(try hang(readToEnd(silent), timeout: patience).isEmpty)
        silent.close()
        listener.close()
    }

    @Test(.tls) func aDrainLetsIdleConnectionsEndWithTheirEndRecord() throws {
        let listener = try Listener.bind("127.0.0.1:0")
        let served = listener.serve(.tls(try TLSServer(serverConfiguration()))) { echoLines($0) }
        let client = try hang(
            connect(to: listener.localAddress, tls: try TLSClient(clientConfiguration())), timeout: patience)
        try hang(client.write("one\n"), timeout: patience)
        expectEqual(try hang(client.readLine(), timeout: patience), "one")
        let line = client.readLine()
        let drained = listener.drain(deadline: patience)
        // Not truncated.
        expect(try hang(line, timeout: patience) == nil)
        client.close()
        _ = hang(drained)
        try hang(served, timeout: patience)
    }
}

private func echoLines(_ connection: Connection) -> Promise<Void> {
    connection.forEachLine { line in connection.write(line + "\n") }
}

private func converse(with address: String, _ client: TLSClient?) throws {
    let connection = try hang(connect(to: address, tls: client), timeout: patience)
    expect((connection.tlsVersion == nil) == (client == nil))
    try hang(connection.write("hello\n"), timeout: patience)
    expectEqual(try hang(connection.readLine(), timeout: patience), "hello")
    try hang(connection.shutdownWrite(), timeout: patience)
    expect(try hang(connection.readLine(), timeout: patience) == nil)
    hang(connection.close())
}
#endif
