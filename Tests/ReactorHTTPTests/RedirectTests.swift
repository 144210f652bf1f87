struct RedirectTests {
    /// The targets of references in a response from `http://a/b/c/d;p?q`: RFC 3986, section 5.4, without fragments,
    /// which are not sent.
    @Test(
        .served,
        arguments: [
            ("g", "http://a/b/c/g"), ("./g", "http://a/b/c/g"), ("g/", "http://a/b/c/g/"), ("/g", "http://a/g"),
            ("//g", "http://g/"), ("?y", "http://a/b/c/d;p?y"), ("g?y", "http://a/b/c/g?y"),
            ("#s", "http://a/b/c/d;p?q"),
            ("g#s", "http://a/b/c/g"), ("g?y#s", "http://a/b/c/g?y"), (";x", "http://a/b/c/;x"),
            ("g;x", "http://a/b/c/g;x"),
            ("g;x?y#s", "http://a/b/c/g;x?y"), ("", "http://a/b/c/d;p?q"), (".", "http://a/b/c/"),
            ("./", "http://a/b/c/"),
            ("..", "http://a/b/"), ("../", "http://a/b/"), ("../g", "http://a/b/g"), ("../..", "http://a/"),
            ("../../", "http://a/"), ("../../g", "http://a/g"),
            // Section 5.4.2.
            ("../../../g", "http://a/g"), ("../../../../g", "http://a/g"), ("/./g", "http://a/g"),
            ("/../g", "http://a/g"),
            ("g.", "http://a/b/c/g."), (".g", "http://a/b/c/.g"), ("g..", "http://a/b/c/g.."),
            ("..g", "http://a/b/c/..g"),
            ("./../g", "http://a/b/g"), ("./g/.", "http://a/b/c/g/"), ("g/./h", "http://a/b/c/g/h"),
            ("g/../h", "http://a/b/c/h"), ("g;x=1/./y", "http://a/b/c/g;x=1/y"), ("g;x=1/../y", "http://a/b/c/y"),
            ("g?y/./x", "http://a/b/c/g?y/./x"), ("g?y/../x", "http://a/b/c/g?y/../x"), ("g#s/./x", "http://a/b/c/g"),
            ("g#s/../x", "http://a/b/c/g"),
            // Others, absolute and relative.
            ("?next=https://x/", "http://a/b/c/d;p?next=https://x/"), ("g:/h//../i://j", "error"), ("g:h", "error"),
            ("http:g", "error"), ("mailto:me@a", "error"), ("HTTP://B:8080/x?y#z", "http://b:8080/x?y"),
            ("http://b", "http://b/"),
            ("http://b?y", "http://b/?y"), ("//b:81/x", "http://b:81/x"), ("1:2", "http://a/b/c/1:2"),
            ("./g:h", "http://a/b/c/g:h"),
            ("x#a:b", "http://a/b/c/x"), ("#a:b", "http://a/b/c/d;p?q"), ("//b#c", "http://b/"),
            ("/x y/ä\t.", "http://a/x%20y/%C3%A4%09."), ("/a//b", "http://a/a//b"), ("//", "error"),
            ("//u:p@b/", "error"),
        ] as [(String, String)])
    func locationsAreResolved(_ location: String, _ resolved: String) throws {
        var requests = 0
        try serve { request in
            requests += 1
            if requests == 1 { return .now(Response(Status(303), headers: ["Location": location])) }
            return .now(Response("http://\(request.headers["host"] ?? "")\(request.target)"))
        }
        let client = HTTPClient(lookup: Table(address))
        let text = firstly { client.fetch("http://a/b/c/d;p?q") }.then { $0.body.text() }
            .recover { _ in .value("error") }
        expectEqual(try hang(text, timeout: patience), resolved)
        client.close()
    }

    @Test(.served) func redirectsAreFollowedUpToALimit() throws {
        var waited = 0
        func waits() -> Bool {
            waited += 1
            return waited <= 5
        }
        try serve { request in
            switch request.path {
            case "/a/b": .now(.redirect(to: "c?x"))
            case "/a/c": .now(.redirect(to: "/end", status: Status(307)))
            case "/end": .now(Response("\(request.method)"))
            case "/loop": .now(.redirect(to: "/loop/back"))
            case "/loop/back": .now(.redirect(to: "/loop"))
            // A page that answers a form by a redirect to itself is no loop.
            case "/form" where request.method == .post: .now(.redirect(to: request.path, status: Status(303)))
            case "/form": .now(Response("here"))
            // A page that redirects to itself until something has happened.
            case "/wait": .now(waits() ? .redirect(to: request.path) : Response("done"))
            default: .now(.redirect(to: request.path + "+"))
            }
        }
        for (path, method, expected) in [
            ("/a/b", Method.post, "GET"), ("/form", .post, "here"), ("/wait", .get, "done"),
        ] {
            let body: RequestBody? = method == .post ? .bytes([1]) : nil
            let text = client.fetch("http://\(address)\(path)", method, body: body).then { $0.body.text() }
            expectEqual(try hang(text, timeout: patience), expected)
        }
        #expect(throws: FetchError.tooManyRedirects(limit: 5)) {
            _ = try hang(client.fetch("http://\(address)/endless"), timeout: patience)
        }
        for path in ["/loop", "/loop/back"] {
            #expect(throws: FetchError.redirectLoop("http://\(address)\(path)")) {
                _ = try hang(client.fetch("http://\(address)\(path)"), timeout: patience)
            }
        }
    }

    /// The server says where to go, and then nothing, or no more than a part of a page that nobody reads.
    @Test(.inLoop, arguments: ["the end", "a reset", "silence"]) func theBodyOfARedirectMayBeCut(_ how: String) throws {
        var requests = 0
        try servePeer { connection in
            connection.read(until: "\r\n\r\n").then { _ -> Promise<Void> in
                requests += 1
                if requests == 2 { return connection.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nthere") }
                return connection.write("HTTP/1.1 302 x\r\nLocation: /\r\nContent-Length: 5\r\n\r\nab")
                    .then { after(.milliseconds(how == "silence" ? 100_000 : 10)) }.done {
                        if how == "a reset" { connection.abort() }
                    }
            }
        }
        let began = EventLoop.current.now
        let page = client.fetch("http://\(address)/").then { $0.body.text() }
        expectEqual(try hang(page, timeout: .seconds(60)), "there")
        expect(began.duration(to: EventLoop.current.now) <= .milliseconds(100))
    }

    @Test(.served) func eachHopIsShownAndMayBeDeclined() throws {
        try serve { request in
            let hops = ["/": "/a?b#c", "/a": "//\(address)/d", "/d": "e", "/wrong": "http://\(address)/x"]
            guard let next = hops[request.path] else { return .now(Response("end")) }
            return .now(Response(Status(302), headers: ["Location": next, "X-Hop": request.path]))
        }
        let base = "http://\(address)"
        let seen = LockedValue<[String]>([])
        var options = HTTPClient.Options()
        options.willRedirect = { response, address in
            seen.withLock { $0.append("\(response.address) \(response.headers["x-hop"] ?? "-") \(address)") }
            if address.hasSuffix("/x") { throw FetchError.badRequest("x") }
            return !address.hasSuffix("/e")
        }
        useClient(options)
        let last = try hang(client.fetch("\(base)/#z"), timeout: patience)
        expect(last.status.code == 302 && last.address == "\(base)/d" && last.headers["location"] == "e")
        let hops = ["\(base)/ / \(base)/a?b", "\(base)/a?b /a \(base)/d", "\(base)/d /d \(base)/e"]
        expectEqual(seen.withLock { $0 }, hops)
        #expect(throws: FetchError.badRequest("x")) { try hang(client.fetch("\(base)/wrong"), timeout: patience) }
        useClient(HTTPClient.Options())
        let end = try hang(client.fetch(base), timeout: patience)
        expect(end.status == .ok && end.address == "\(base)/e")
    }

    /// For any bytes of a server: valid UTF-8 and others.
    @Test(.inRealTime) func theBytesOfALocationAreEscapedOneByOne() throws {
        var targets: [Substring] = []
        try servePeer { head, connection in
            targets.append(head.split(separator: " ")[1])
            if targets.count > 1 { return connection.write("HTTP/1.1 200 x\r\nContent-Length: 0\r\n\r\n") }
            let redirect = "HTTP/1.1 307 x\r\nContent-Length: 0\r\nLocation: /caf"
            return connection.write(Array(redirect.utf8) + [0xE9, 0x2F] + Array("\u{E9}?\u{80}\r\n\r\n".utf8))
        }
        _ = try hang(client.fetch("http://\(address)/"), timeout: patience)
        expectEqual(targets, ["/", "/caf%E9/%C3%A9?%C2%80"])
    }

    /// RFC 9110, section 15.4: the requests that become GET without a body.
    @Test(
        .served,
        arguments: [
            (301, Method.post, "GET -  "), (302, .post, "GET -  "), (303, .post, "GET -  "),
            (307, .post, "POST a/b x de"),
            (308, .post, "POST a/b x de"), (301, .put, "PUT a/b x de"), (302, .put, "PUT a/b x de"),
            (303, .put, "GET -  "),
            (303, .head, "HEAD a/b x de"), (302, .delete, "DELETE a/b x de"), (300, .get, "300"), (304, .get, "304"),
        ])
    func theMethodAndTheBodyFollowOrNot(_ status: Int, _ method: Method, _ expected: String) throws {
        var seen = ""
        try serve { request in
            if request.path == "/" { return .now(.redirect(to: "/end", status: Status(status))) }
            let (type, language) = (request.headers["content-type"], request.headers["content-language"])
            return .later(
                request.body.text().map { text in
                    seen = "\(request.method) \(type ?? "-") \(text) \(language ?? "")"
                    return Response("")
                })
        }
        let headers: Headers = ["Content-Type": "a/b", "Content-Language": "de"]
        let response = try hang(
            client.fetch("http://\(address)/", method, headers: headers, body: .text("x")), timeout: patience)
        expectEqual((response.status == .ok ? seen : "\(response.status.code)"), expected)
    }

    @Test(.served) func secretsAndTheHostFollowToTheSameServerOnly() throws {
        var seen: [String] = []
        try serve { request in
            let secrets = request.headers.filter { $0.value == "secret" }.map(\.name)
            seen.append("\(request.headers["host"] ?? "-") \(request.headers["x-other"] ?? "-") \(secrets)")
            return .now(request.path == "/again" ? .redirect(to: "/") : Response(""))
        }
        let (server, other) = (address, try Listener.bind("127.0.0.1:0"))
        other.serveHTTP { _ in Response.redirect(to: "http://\(server)/") }
        let headers: Headers = [
            "Host": "a:81", "Authorization": "secret", "Cookie": "secret", "Proxy-Authorization": "secret",
            "X-Other": "1",
        ]
        for address in ["http://\(other.localAddress)/", "http://\(server)/again"] {
            _ = try hang(client.fetch(address, headers: headers), timeout: patience)
        }
        other.close()
        // The credentials of a proxy go to no server.
        let whole = #"a:81 1 ["Authorization", "Cookie"]"#
        expectEqual(seen, ["\(server) 1 []", whole, whole])
    }
}

/// Resolves every name to one server.
struct Table: NameLookup {
    let server: SocketAddress
    init(_ server: SocketAddress) { self.server = server }
    func addresses(of host: String, port: UInt16) -> Promise<[SocketAddress]> { .value([server]) }
}
