#if TLS
import ReactorHTTP

/// ReactorHTTP over TLS.
struct FetchTests {
    /// The options of a client whose servers show a certificate for `name`, or for the name in the address.
    private func options(_ tls: TLSClient, name: String? = nil) -> HTTPClient.Options {
        var options = HTTPClient.Options()
        options.startTLS = { connection, host in connection.startTLS(as: tls, serverName: name ?? host) }
        return options
    }

    @Test(.tls) func fetchesAndWebSocketsOverTLS() throws {
        let tls = try TLSClient(clientConfiguration())
        var isSecure: [Bool] = []
        let listener = try Listener.bind("127.0.0.1:0")
        listener.serveHTTP(serving: .tls(try TLSServer(serverConfiguration()))) { request in
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

    /// The client learns that after it has begun to send.
    @Test(.tls(turns: .max), arguments: [false, true]) func anUploadThatIsRefusedForItsCertificateSaysSo(isStream: Bool)
        throws
    {
        let server = try TLSServer(
            serverConfiguration {
                ($0.clientCertificates, $0.trustRoots) = (.required, .pem(Certificates.shared.authority))
            })
        let listener = try Listener.bind("127.0.0.1:0")
        // As a server that does not read on: the upload meets its reset.
        listener.serve { connection in
            connection.startTLS(as: server).asVoid().recover(policy: .allErrors) { _ in
                connection.abort()
                return .value
            }
        }
        let client = HTTPClient(options(try TLSClient(clientConfiguration())))
        let part = [UInt8](repeating: 1, count: 1 << 20)
        for _ in 0..<20 {
            let body: RequestBody =
                isStream
                ? .stream { output in output.write(part).then { output.write(part) }.then { output.write(part) } }
                : .bytes(part + part + part)
            let fetched = client.fetch("https://localhost:\(listener.localAddress.port)/", .post, body: body)
            expectEqual(try cause(of: fetched), .alert(116))
        }
        client.close()
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
