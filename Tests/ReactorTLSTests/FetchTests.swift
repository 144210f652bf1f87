#if TLS
import ReactorHTTP

/// ReactorHTTP over TLS.
struct FetchTests {
    private func serve(_ handler: @escaping (Request) throws -> Response) throws -> Listener {
        let listener = try Listener.bind("127.0.0.1:0")
        listener.serveHTTP(serving: .tls(try TLSServer(serverConfiguration())), handler: handler)
        return listener
    }

    /// The options of a client whose servers show a certificate for `name`, or for the name in the address.
    private func options(_ tls: TLSClient, name: String? = nil) -> HTTPClient.Options {
        var options = HTTPClient.Options()
        options.startTLS = { connection, host in connection.startTLS(as: tls, serverName: name ?? host) }
        return options
    }

    @Test(.tls) func fetchesAndWebSocketsOverTLS() throws {
        let tls = try TLSClient(clientConfiguration())
        var isSecure: [Bool] = []
        let listener = try serve { request in
            isSecure.append(request.connection?.tlsVersion != nil)
            if request.path == "/page" { return Response("hello") }
            return Response.webSocket(request) { socket in socket.forEach { socket.send($0).asVoid() } }
        }
        let client = HTTPClient(options(tls))
        let server = "localhost:\(listener.localAddress.port)"
        for _ in 0..<2 {
            let page = client.fetch("https://\(server)/page").then { $0.body.text() }
            expectEqual(try hang(page, timeout: patience), "hello")
        }
        let socket = try hang(client.webSocket("wss://\(server)/"), timeout: patience)
        for count in [0, 5, 70_000] {
            let message = WebSocket.Message.text(String(repeating: "x", count: count))
            socket.send(message)
            expectEqual(try hang(socket.receive(), timeout: patience), message)
        }
        try hang(socket.close(), timeout: patience)
        expectEqual(try hang(socket.receive(), timeout: patience), nil)
        expectEqual(isSecure, [true, true, true])
        let other = HTTPClient(options(tls, name: "other.example")).webSocket("wss://\(server)/")
        #expect(throws: TLSError.self) { try hang(other, timeout: patience) }
        client.close()
        hang(listener.drain(deadline: .zero))
    }

    @Test(.tls) func fetchesThroughATunnel() throws {
        let listener = try serve { Response($0.target) }
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
        var options = options(try TLSClient(clientConfiguration()))
        options.proxies = Proxies(https: "\(proxy.localAddress)")
        let client = HTTPClient(options)
        for path in ["/a", "/b"] {
            let text = client.fetch("https://localhost\(path)").then { $0.body.text() }
            expectEqual(try hang(text, timeout: patience), path)
        }
        expectEqual(heads, ["CONNECT localhost:443 HTTP/1.1\r\nHost: localhost:443"])
        client.close()
        hang(proxy.drain(deadline: .zero))
        hang(listener.drain(deadline: .zero))
    }

    /// No request is sent to a server whose certificate is from a stranger or for another name.
    @Test(.tls, arguments: [nil, "localhost", "127.0.0.1"]) func refusesACertificateBeforeTheRequest(host: String?)
        throws
    {
        let server = try TLSServer(
            serverConfiguration { if host != nil { $0.identity = Certificates.shared.other } })
        let listener = try Listener.bind("127.0.0.1:0")
        var requests = 0
        listener.serveHTTP(serving: .tls(server)) { _ in
            requests += 1
            return Response("hello")
        }
        let client = HTTPClient(options(try TLSClient(host == nil ? TLSConfiguration() : clientConfiguration())))
        let fetched = client.fetch("https://\(host ?? "localhost"):\(listener.localAddress.port)/")
        let error = #expect(throws: TLSError.self) { try hang(fetched, timeout: patience) }
        expect(host == nil || error?.cause == .certificate(.wrongName))
        expectEqual(requests, 0)
        client.close()
        hang(listener.drain(deadline: .zero))
    }
}
#endif
