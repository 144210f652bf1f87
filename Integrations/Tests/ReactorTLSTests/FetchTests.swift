import Promises
import Reactor
import ReactorHTTP
import ReactorTLS
import Testing

/// The HTTP of the package beside this one over TLS.
@Suite struct FetchTests {
    @Test func fetchesOverTLS() throws {
        let server = try TLSServer(serverConfiguration())
        let tls = try TLSClient(clientConfiguration())
        try EventLoop.withLoop { _ in
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
            listener.drain(deadline: .zero)
        }
    }
}
