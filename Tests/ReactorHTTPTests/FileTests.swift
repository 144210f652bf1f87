struct FileTests {
    /// A folder with `page.html`, `large.bin`, `.secret` and `sub/index.html`, next to a file that must not be served.
    private func serveFiles() throws -> String {
        let folder = Folder()
        atEnd { withExtendedLifetime(folder) {} }
        let base = folder.path
        let names = [
            "www/page.html", "www/large.bin", "www/.secret", "www/sub/index.html", "www/.well-known/acme/token",
            "www/.well-known/.hidden", "www/sub/.well-known/x", "outside",
        ]
        for name in ["www", "www/sub", "www/sub/.well-known", "www/.well-known", "www/.well-known/acme"] {
            mkdir("\(base)/\(name)", 0o755)
        }
        let files = StaticFiles("\(base)/www", headers: ["Cache-Control": "max-age=60", "Accept-Ranges": "none"])
        try serve { request in
            let path = request.path
            // A part of a site, named in several ways.
            if path.hasPrefix("/part") { return .later(files.response(to: request, path: String(path.dropFirst(5)))) }
            if path.hasPrefix("/bare/") { return .later(files.response(to: request, path: String(path.dropFirst(6)))) }
            if path.hasPrefix("/alias") { return .later(files.response(to: request, path: "sub")) }
            return .later(files.response(to: request))
        }
        for name in names {
            let bytes = name == "www/large.bin" ? Self.large : Array("0123456789".utf8)
            try hang(writeFile(bytes, to: "\(base)/\(name)"), timeout: patience)
        }
        return "http://\(address)"
    }

    private static let large = (0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }

    private func get(
        _ client: HTTPClient, _ address: String, _ headers: Headers = [:], _ method: ReactorHTTP.Method = .get
    ) throws -> (Fetched, [UInt8]) {
        try hang(
            client.fetch(address, method, headers: headers).then { response in
                response.body.bytes().map { (response, $0) }
            }, timeout: patience)
    }

    @Test(.served) func filesAreServedWithTheirType() throws {
        let address = try serveFiles()
        let (page, text) = try get(client, address + "/page.html")
        expect(page.status == .ok && page.headers["content-type"] == "text/html; charset=utf-8")
        expectEqual(text, Array("0123456789".utf8))
        let (_, bytes) = try get(client, address + "/large.bin")
        expectEqual(bytes, Self.large)
        let (index, _) = try get(client, address + "/sub")
        expect(index.status == .ok && index.headers["content-length"] == "10")
        let (head, none) = try get(client, address + "/large.bin", [:], .head)
        expect(head.headers["content-length"] == "1000000" && none.isEmpty)
        let (refused, _) = try get(client, address + "/page.html", [:], .post)
        expectEqual(refused.status, .methodNotAllowed)
    }

    @Test(
        .served,
        arguments: [
            "/none", "/.secret", "/../outside", "/%2e%2e/outside", "/..%2foutside", "/%2e%2e%2foutside",
            "/sub/../../outside",
            "/page.html%00", "/page.html/", "/%", "/%zz", "/%+1", "/page.html/x", "//../outside",
            "/.well-known/.hidden", "/.well-known/none", "/.well-known/../.secret", "/sub/.well-known/x",
            "/bare/.secret",
            "/bare/../outside", "/part../outside", "/.wellknown/x",
        ])
    func nothingElseIsServed(_ path: String) throws {
        let address = try serveFiles()
        let (response, _) = try get(client, address + path)
        expectEqual(response.status, .notFound)
    }

    /// RFC 9110, section 14.
    @Test(
        .served,
        arguments: [
            ("bytes=0-0", 206, "0", "bytes 0-0/10"), ("bytes=8-", 206, "89", "bytes 8-9/10"),
            ("bytes=-3", 206, "789", "bytes 7-9/10"), ("bytes=2-99", 206, "23456789", "bytes 2-9/10"),
            ("bytes=-99", 206, "0123456789", "bytes 0-9/10"), ("bytes=10-", 416, "", "bytes */10"),
            ("bytes=-0", 416, "", "bytes */10"), ("bytes=3-1", 200, "0123456789", nil),
            ("bytes=0-1,4-5", 200, "0123456789", nil),
            ("bytes=a-b", 200, "0123456789", nil), ("lines=0-1", 200, "0123456789", nil),
            ("bytes=99999999999999999999-", 416, "", "bytes */10"),
        ])
    func ranges(_ range: String, _ code: Int, _ text: String, _ field: String?) throws {
        let address = try serveFiles()
        let (response, bytes) = try get(client, address + "/page.html", ["Range": range])
        expect(response.status.code == code && bytes == Array(text.utf8))
        expectEqual(response.headers["content-range"], field)
    }

    /// RFC 9110, section 13.
    @Test(.served) func whatTheClientHasIsNotSentAgain() throws {
        let address = try serveFiles()
        let (first, _) = try get(client, address + "/page.html")
        let tag = try #require(first.headers["etag"])
        let date = try #require(first.headers["last-modified"])
        for headers: Headers in [
            ["If-None-Match": tag], ["If-None-Match": "\"x\", W/\(tag)"], ["If-None-Match": "*"],
            ["If-Modified-Since": date],
        ] {
            let (response, bytes) = try get(client, address + "/page.html", headers)
            expect(response.status == .notModified && bytes.isEmpty && response.headers["etag"] == tag)
        }
        // With a different tag the date does not count.
        let (changed, _) = try get(
            client, address + "/page.html", ["If-None-Match": "\"x\"", "If-Modified-Since": date])
        expectEqual(changed.status, .ok)
        let (part, _) = try get(client, address + "/page.html", ["Range": "bytes=0-1", "If-Range": tag])
        let (whole, _) = try get(client, address + "/page.html", ["Range": "bytes=0-1", "If-Range": "\"x\""])
        expect(part.status.code == 206 && whole.status == .ok)
    }

    // MARK: Folders

    /// A client that does not follow redirects.
    private func location(_ address: String) throws -> String? {
        let text = address.dropFirst("http://".utf8.count)
        let slash = try #require(text.firstIndex(of: "/"))
        let server = try SocketAddress(String(text[..<slash]))
        let answer = try conversation(server, "GET \(text[slash...]) HTTP/1.1\r\nHost: x\r\n\r\n")
        expectEqual(statuses(answer), [301], "\(answer)")
        return answer.split(separator: "\r\n").first { $0.hasPrefix("Location: ") }.map { String($0.dropFirst(10)) }
    }

    /// To the requested path, whatever name the program gave the folder.
    @Test(
        .served,
        arguments: [
            ("/sub", "/sub/"), ("/sub?page=2", "/sub/?page=2"), ("/part/sub?page=2", "/part/sub/?page=2"),
            ("/part", "/part/"), ("/part?q", "/part/?q"), ("/partsub?", "/partsub/?"),
            ("/bare/sub?a=b?c", "/bare/sub/?a=b?c"),
            ("/alias?x", "/alias/?x"), ("//sub", "/sub/"), ("///sub?page=2", "/sub/?page=2"),
            ("/%73ub", "/%73ub/"),
        ])
    func aFolderIsRedirectedToItself(_ target: String, _ expected: String) throws {
        let address = try serveFiles()
        expectEqual(try location(address + target), expected)
    }

    /// A browser would take this for a server's name.
    @Test(.served, arguments: ["/\\host/..part", "//host/..part", "/\\/host/..part"])
    func aRedirectNamesNoServer(_ path: String) throws {
        try serve { request in
            .later(StaticFiles("/").response(to: request, path: "tmp"))
        }
        let answer = try conversation(address, "GET \(path) HTTP/1.1\r\nHost: x\r\n\r\n")
        expect(answer.contains("\r\nLocation: /host/..part/\r\n"), "\(answer)")
    }

    @Test(.served) func aFolderBelowAPathWithASlashIsItsIndex() throws {
        let address = try serveFiles()
        for path in ["/sub/", "/part/sub/", "/bare/sub/", "/alias/"] {
            let (page, text) = try get(client, address + path)
            expect(page.status == .ok && text == Array("0123456789".utf8), "\(path)")
            expectEqual(page.headers["content-type"], "text/html; charset=utf-8")
        }
        // A folder without an index.
        let (none, _) = try get(client, address + "/.well-known/")
        expectEqual(none.status, .notFound)
    }

    @Test func anIndexThatIsAFolderIsNotFound() throws {
        let files = StaticFiles("/", index: "tmp")
        try withServer({ .later(files.response(to: $0)) }) { address, _ in try expect([404], address, ServerTests.get) }
    }

    @Test(.served) func wellKnownPlacesAreServed() throws {
        let address = try serveFiles()
        for path in ["/.well-known/acme/token", "/part/.well-known/acme/token", "/bare/.well-known/acme/token"] {
            let (page, text) = try get(client, address + path)
            expect(page.status == .ok && text == Array("0123456789".utf8), "\(path)")
            expectEqual(page.headers.all("accept-ranges"), ["none"])
        }
        let (page, _) = try get(client, address + "/bare/page.html")
        expectEqual(page.status, .ok)
    }

    // MARK: Conditions

    /// RFC 9110, section 13.2.2.
    @Test(
        .served,
        arguments: [
            (["If-Match": "\"other\""], 412), (["If-Match": "TAG"], 200), (["If-Match": "\"x\", TAG"], 200),
            (["If-Match": "*"], 200), (["If-Match": "W/TAG"], 412), (["If-Match": ""], 412),
            (["If-Unmodified-Since": "Sun, 06 Nov 1994 08:49:37 GMT"], 412),
            (["If-Unmodified-Since": "Sunday, 06-Nov-94 08:49:37 GMT"], 412),
            (["If-Unmodified-Since": "Sun Nov  6 08:49:37 1994"], 412), (["If-Unmodified-Since": "DATE"], 200),
            (["If-Unmodified-Since": "Fri, 01 Jan 2100 00:00:00 GMT"], 200),
            (["If-Unmodified-Since": "Sun, 06 Nov 1994 08:49:37 CET"], 200),
            (["If-Unmodified-Since": "Sun, 99 Nov 1994 08:49:37 GMT"], 200), (["If-Unmodified-Since": "long ago"], 200),
            // The tag decides.
            (["If-Match": "TAG", "If-Unmodified-Since": "Sun, 06 Nov 1994 08:49:37 GMT"], 200),
            (["If-Match": "\"other\"", "If-None-Match": "TAG"], 412),
            (["If-Match": "TAG", "If-None-Match": "TAG"], 304),
            (["If-Match": "\"other\"", "Range": "bytes=0-1"], 412), (["If-Match": "TAG", "Range": "bytes=0-1"], 206),
            (["If-Unmodified-Since": "Sun, 06 Nov 1994 08:49:37 GMT", "If-Modified-Since": "DATE"], 412),
        ] as [([String: String], Int)])
    func preconditions(_ fields: [String: String], _ code: Int) throws {
        let address = try serveFiles()
        let (first, _) = try get(client, address + "/page.html")
        let (tag, date) = (try #require(first.headers["etag"]), try #require(first.headers["last-modified"]))
        var headers = Headers()
        for (name, value) in fields {
            headers[name] = value.components("TAG").joined(separator: tag).components("DATE").joined(separator: date)
        }
        for method in [ReactorHTTP.Method.get, .head] {
            let (response, bytes) = try get(client, address + "/page.html", headers, method)
            expectEqual(response.status.code, code)
            expect(method == .head || (code < 300) == !bytes.isEmpty)
        }
    }

    // MARK: What is no file

    /// open(2) fails with ENXIO for a socket.
    @Test(.inRealTime) func whatIsNoFileIsNotFound() throws {
        let folder = Folder()
        let listener = try Listener.bind("unix:\(folder["socket"])")
        defer { listener.close() }
        mkfifo(folder["fifo"], 0o644)
        symlink("nowhere", folder["dangling"])
        symlink("loop", folder["loop"])
        symlink("/dev/null", folder["null"])
        var errors = 0
        let web = try Listener.bind("127.0.0.1:0")
        let files = StaticFiles(folder.path)
        let served = web.serveHTTP(onError: { _, _ in errors += 1 }) { request in files.response(to: request) }
        for (name, code) in [("socket", 404), ("fifo", 404), ("dangling", 404), ("loop", 403), ("null", 404)] {
            try expect([code], web.localAddress, "GET /\(name) HTTP/1.1\r\nHost: x\r\n\r\n")
        }
        expectEqual(errors, 0)
        web.close()
        _ = try hang(served, timeout: patience)
    }
}
