#if TLS
/// Listeners and connects with TLS.
struct ServeTLSTests {
    enum Form: CaseIterable { case one, onGroup, untilASignal, onGroupUntilASignal, async, asyncOnGroup }

    @Test(.ownThread, arguments: Form.allCases, [true, false])
    func everyFormOfServeAnswers(form: Form, isSecure: Bool) throws {
        let server = isSecure ? try TLSServer(serverConfiguration()) : nil
        let stopping = ServeOptions(stopSignals: [SIGWINCH], drainTimeout: patience).tls(server)
        let group = try LoopGroup(loops: 2, name: "tls")
        defer {
            group.stop()
            group.join()
        }
        try withNetwork { net in
            let listener = try Listener.bind("127.0.0.1:0")
            let served =
                switch form {
                case .one: listener.serve(.tls(server)) { echoLines($0) }
                case .onGroup: listener.serve(on: group, .tls(server)) { echoLines($0) }
                case .untilASignal: listener.serve(stopping) { echoLines($0) }
                case .onGroupUntilASignal: listener.serve(on: group, stopping) { echoLines($0) }
                case .async:
                    listener.serveAsync(.tls(server)) { connection async throws in try await echo(connection) }
                case .asyncOnGroup:
                    listener.serveAsync(on: group, .tls(server)) { connection async throws in
                        try await echo(connection)
                    }
                }
            let client = isSecure ? try TLSClient(clientConfiguration()) : nil
            let connecting = connect(to: "localhost:\(listener.localAddress.port)", tls: client)
            let connection = try hang(connecting, timeout: patience)
            expect((connection.tlsVersion == nil) != isSecure)
            try hang(connection.write("hello\n"), timeout: patience)
            expectEqual(try hang(connection.readLine(), timeout: patience), "hello")
            try hang(connection.shutdownWrite(), timeout: patience)
            expect(try hang(connection.readLine(), timeout: patience) == nil)
            hang(connection.close())
            listener.close()
            try hang(served, timeout: patience)
        }
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
}

private func echoLines(_ connection: Connection) -> Promise<Void> {
    connection.forEachLine { line in connection.write(line + "\n") }
}

private func echo(_ connection: Connection) async throws {
    for try await line in connection.lines { try await connection.write(line + "\n").value }
}
#endif
