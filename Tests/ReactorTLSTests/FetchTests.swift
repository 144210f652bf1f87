#if TLS
import ReactorHTTP

/// ReactorHTTP over TLS.
struct FetchTests {
    @Test(.tls) func fetchesOverTLS() throws {
        let server = try TLSServer(serverConfiguration())
        let tls = try TLSClient(clientConfiguration())
        let listener = try Listener.bind("127.0.0.1:0")
        var isSecure: [Bool] = []
        listener.serveHTTP(serving: .tls(server)) { request in
            isSecure.append(request.connection?.tlsVersion != nil)
            return Response("hello")
        }
        var options = HTTPClient.Options()
        options.startTLS = { connection, host in connection.startTLS(as: tls, serverName: host) }
        let client = HTTPClient(options)
        let port = listener.localAddress.port
        for _ in 0..<2 {
            let page = client.fetch("https://localhost:\(port)/").then { $0.body.text() }
            let text = try hang(page, timeout: patience)
            #expect(text == "hello")
        }
        #expect(isSecure == [true, true])
        client.close()
        hang(listener.drain(deadline: .zero))
    }

    @Test(.tls) func aWebSocketOverTLS() throws {
        let server = try TLSServer(serverConfiguration())
        let tls = try TLSClient(clientConfiguration())
        let listener = try Listener.bind("127.0.0.1:0")
        listener.serveHTTP(serving: .tls(server)) { request in
            Response.webSocket(request) { socket in socket.forEach { socket.send($0).asVoid() } }
        }
        var options = HTTPClient.Options()
        options.startTLS = { connection, host in connection.startTLS(as: tls, serverName: host) }
        let client = HTTPClient(options)
        let socket = try hang(client.webSocket("wss://localhost:\(listener.localAddress.port)/"), timeout: patience)
        for count in [0, 5, 70_000] {
            let message = WebSocket.Message.text(String(repeating: "x", count: count))
            socket.send(message)
            let answer = try hang(socket.receive(), timeout: patience)
            #expect(answer == message)
        }
        try hang(socket.close(), timeout: patience)
        let end = try hang(socket.receive(), timeout: patience)
        #expect(end == nil)
        // The certificate is for another name.
        options.startTLS = { connection, _ in connection.startTLS(as: tls, serverName: "other.example") }
        let other = HTTPClient(options).webSocket("wss://localhost:\(listener.localAddress.port)/")
        #expect(throws: TLSError.self) { try hang(other, timeout: patience) }
        client.close()
        hang(listener.drain(deadline: .zero))
    }

    @Test(.tls) func fetchesThroughATunnel() throws {
        let server = try TLSServer(serverConfiguration())
        let tls = try TLSClient(clientConfiguration())
        let listener = try Listener.bind("127.0.0.1:0")
        listener.serveHTTP(serving: .tls(server)) { request in Response(request.target) }
        let (address, proxy) = (listener.localAddress, try Listener.bind("127.0.0.1:0"))
        var heads: [String] = []
        proxy.serve { client in
            client.read(until: "\r\n\r\n").then { head -> Promise<Void> in
                heads.append(String(decoding: head ?? [], as: UTF8.self))
                return connect(to: address).then { server in
                    client.write("HTTP/1.1 200 OK\r\n\r\n").then {
                        when(
                            fulfilled: pipe(from: client, to: server, endingSink: true).asVoid(),
                            pipe(from: server, to: client, endingSink: true).asVoid())
                    }.asVoid().ensure { server.close() }
                }
            }
        }
        var options = HTTPClient.Options()
        options.startTLS = { connection, host in connection.startTLS(as: tls, serverName: host) }
        options.proxies = Proxies(https: "\(proxy.localAddress)")
        let client = HTTPClient(options)
        for path in ["/a", "/b"] {
            let text = try hang(client.fetch("https://localhost\(path)").then { $0.body.text() }, timeout: patience)
            #expect(text == path)
        }
        #expect(heads == ["CONNECT localhost:443 HTTP/1.1\r\nHost: localhost:443"])
        client.close()
        hang(proxy.drain(deadline: .zero))
        hang(listener.drain(deadline: .zero))
    }

    @Test func trustsNobodyUnasked() throws {
        _ = try refusal(by: TLSConfiguration(), of: serverConfiguration())
    }

    @Test(arguments: ["localhost", "127.0.0.1"]) func refusesACertificateForAnotherName(host: String) throws {
        let server = serverConfiguration { $0.identity = Certificates.shared.other }
        let error = try refusal(by: clientConfiguration(), of: server, at: host)
        #expect(error?.cause == .certificate(.wrongName))
    }

    /// The error of a client that must not send a request to a server.
    private func refusal(
        by client: TLSConfiguration, of server: TLSConfiguration, at host: String = "localhost"
    ) throws -> TLSError? {
        var error: TLSError?
        try withNetwork { _ in
            let server = try TLSServer(server)
            let tls = try TLSClient(client)
            let listener = try Listener.bind("127.0.0.1:0")
            var requests = 0
            listener.serveHTTP(serving: .tls(server)) { _ in
                requests += 1
                return Response("hello")
            }
            var options = HTTPClient.Options()
            options.startTLS = { connection, host in connection.startTLS(as: tls, serverName: host) }
            let client = HTTPClient(options)
            let fetched = client.fetch("https://\(host):\(listener.localAddress.port)/")
            error = #expect(throws: TLSError.self) { try hang(fetched, timeout: patience) }
            #expect(requests == 0)
            client.close()
            hang(listener.drain(deadline: .zero))
        }
        return error
    }
}
#endif
