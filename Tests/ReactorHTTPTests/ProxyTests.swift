struct ProxyTests {
    /// A small proxy: records the heads of requests, forwards a request as its first line says, and opens tunnels.
    final class SmallProxy {
        let listener: Listener
        lazy var client = HTTPClient(options)
        var heads: [String] = []
        var answer: String?
        var options: HTTPClient.Options {
            var options = HTTPClient.Options()
            options.userAgent = nil
            options.proxies = Proxies(http: "http://\(listener.localAddress)", https: "\(listener.localAddress)")
            options.startTLS = { connection, _ in .value(connection) }
            return options
        }

        init(to server: SocketAddress) throws {
            listener = try Listener.bind("127.0.0.1:0")
            listener.serve { client in
                client.read(until: "\r\n\r\n").then { head -> Promise<Void> in
                    let head = String(decoding: head ?? [], as: UTF8.self)
                    self.heads.append(head)
                    if let answer = self.answer { return client.write(answer) }
                    let isTunnel = head.hasPrefix("CONNECT ")
                    return connect(to: server).then { server -> Promise<Void> in
                        let first =
                            isTunnel
                            ? client.write("HTTP/1.1 200 Connected\r\nContent-Length: 5\r\n\r\n")
                            : server.write(head + "\r\n\r\n")
                        return first.then {
                            when(
                                fulfilled: pipe(from: client, to: server, endingSink: true).asVoid(),
                                pipe(from: server, to: client, endingSink: true).asVoid())
                        }.asVoid().ensure { server.close() }
                    }
                }
            }
        }
    }

    private func serveProxy() throws -> SmallProxy {
        try serve { request in
            .now(Response("\(request.target) \(request.headers["proxy-authorization"] ?? "-")"))
        }
        let proxy = try SmallProxy(to: address)
        atEnd {
            proxy.client.close()
            proxy.listener.drain(deadline: .zero)
        }
        return proxy
    }

    private func text(_ address: String, _ client: HTTPClient, _ headers: Headers = [:]) throws -> String {
        try hang(client.fetch(address, headers: headers).then { $0.body.text() }, timeout: patience)
    }

    @Test(.served) func plainRequestsGoThroughAProxyInAbsoluteForm() throws {
        let proxy = try serveProxy()
        // The zone means nothing to others.
        let addresses = ["http://a.example:81/x?y", "http://b.example/", "http://[fe80::1%25lo]/"]
        let texts = try addresses.map { try text($0, proxy.client) }
        expectEqual(texts, ["http://a.example:81/x?y -", "http://b.example/ -", "http://[fe80::1]/ -"])
        expectEqual(proxy.heads, ["GET http://a.example:81/x?y HTTP/1.1\r\nHost: a.example:81"])
    }

    @Test(.served) func secureRequestsGoThroughATunnelThatIsKept() throws {
        let proxy = try serveProxy()
        for host in ["a.example", "a.example", "b.example:444", "[2001:db8::1]", "10.0.0.1"] {
            expectEqual(try text("https://\(host)/x", proxy.client, ["Proxy-Authorization": "secret"]), "/x -")
        }
        let targets = ["a.example:443", "b.example:444", "[2001:db8::1]:443", "10.0.0.1:443"]
        expectEqual(proxy.heads, targets.map { "CONNECT \($0) HTTP/1.1\r\nHost: \($0)" })
    }

    @Test(.served) func theAccountOfAProxyIsForTheProxy() throws {
        let proxy = try serveProxy()
        var options = proxy.options
        options.proxies.http = "http://me%40x:p:w@\(proxy.listener.localAddress)/"
        options.proxies.https = options.proxies.http
        useClient(options)
        let (plain, secure) = (try text("http://a.example/", client), try text("https://a.example/", client))
        // The small proxy forwards the field, a real one does not.
        expect(plain == "http://a.example/ Basic bWVAeDpwOnc=" && secure == "/ -")
        expect(proxy.heads.allSatisfy { $0.hasSuffix("\r\nProxy-Authorization: Basic bWVAeDpwOnc=") })
    }

    @Test(.served) func aRefusedTunnelIsAnErrorWithItsStatus() throws {
        let proxy = try serveProxy()
        proxy.answer = "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"
        let refusal = FetchError.refusedByProxy(Status(407), headers: ["Content-Length": "0"], body: [])
        #expect(throws: refusal) { _ = try text("https://a.example/", proxy.client) }
        proxy.answer = "HTTP/1.1 200"
        #expect(throws: (any Error).self) { _ = try text("https://a.example/", proxy.client) }
    }

    @Test(
        .inRealTime,
        arguments: ["socks5://x:y@a:1080", "https://a:443", "http://a:b", "http://", "http://%:x@a:80", ""])
    func otherProxiesAreRefusedWithoutNamingTheirAccount(_ proxy: String) {
        var options = HTTPClient.Options()
        options.startTLS = { connection, _ in .value(connection) }
        options.proxies = Proxies(http: proxy, https: proxy)
        for address in ["http://a.example/", "https://a.example/"] {
            let error = #expect(throws: FetchError.self) {
                _ = try hang(HTTPClient(options).fetch(address), timeout: patience)
            }
            expectEqual(error.map { "\($0)".hasSuffix("is not the address of a proxy for HTTP") }, true)
            expectEqual(error.map { !"\($0)".contains(":y@") }, true)
        }
    }

    @Test func theEnvironmentIsReadAsCurlDoes() {
        func proxies(_ variables: [String: String]) -> Proxies { Proxies { variables[$0] } }
        expectEqual(proxies([:]), Proxies())
        #expect(
            proxies(["http_proxy": "a", "HTTPS_PROXY": "b", "NO_PROXY": "c"])
                == Proxies(http: "a", https: "b", exceptions: "c"))
        // A client of a CGI program chooses the value of HTTP_PROXY.
        expectEqual(proxies(["HTTP_PROXY": "a"]), Proxies())
        expectEqual(proxies(["all_proxy": "a", "https_proxy": ""]), Proxies(http: "a", https: "a"))
        #expect(
            proxies(["ALL_PROXY": "a", "https_proxy": "b", "no_proxy": "d", "NO_PROXY": "e"])
                == Proxies(http: "a", https: "b", exceptions: "d"))
    }

    /// As the manual page curl(1) says of `NO_PROXY`.
    @Test(
        arguments: [
            ("", "a.example", false), ("*", "a.example", true), ("b, *", "a.example", false),
            ("a.example", "a.example", true),
            ("A.Example", "a.example", true), (".example", "a.example", true), ("example", "a.example", true),
            ("example.", "a.example.", true), ("xample", "a.example", false), ("a.example.com", "a.example", false),
            ("b c,a.example", "a.example", true), (".", "a.example", false), ("localhost", "localhost", true),
            ("10.0.0.1", "10.0.0.1", true), ("10.0.0.0/8", "10.9.9.9", true), ("10.0.0.0/8", "11.0.0.1", false),
            ("10.0.0.128/25", "10.0.0.127", false), ("10.0.0.128/25", "10.0.0.129", true),
            ("0.0.0.1", "10.0.0.1", false),
            ("10.0.0.0/x", "10.0.0.1", false), ("10.0.0.0/-1", "10.0.0.1", false), ("10.0.0.0/33", "10.0.0.0", false),
            ("10.0.0.0/0", "11.0.0.1", true), ("/8", "10.0.0.1", false),
            ("::1", "::1", true), ("[::1]", "::1", true), ("2001:db8::/32", "2001:db8:1::2", true),
            ("2001:db8::/32", "2001:db9::", false), ("10.0.0.0/8", "a.example", false),
            // With a port, which curl's list cannot have.
            ("[::1]:80", "::1", true), ("[::1]:99", "::1", false), ("10.0.0.1:80", "10.0.0.1", true),
            ("10.0.0.1:99", "10.0.0.1", false), ("a.example:80", "a.example", true),
            ("a.example:99", "a.example", false),
            (".example:80", "a.example", true), ("a.example:", "a.example", false),
            ("a.example:http", "a.example", false),
            ("[::1]:", "::1", false), ("[::1]x", "::1", false), ("[::1", "::1", false), ("::1]", "::1", false),
            ("[[::1]]", "::1", false), ("[10.0.0.1]", "10.0.0.1", true), ("::1/+8", "::1", false),
            ("::1/", "::1", false),
            ("::1:80", "::1", false), ("1:2:3", "a.example", false),
        ] as [(String, String, Bool)])
    func exceptionsAreReachedDirectly(_ exceptions: String, _ host: String, _ isDirect: Bool) {
        expectEqual(Proxies(exceptions: exceptions).isExcepted(host, port: 80), isDirect)
    }
}
