@testable import ReactorHTTP

struct FileTests {
    /// A folder with `page.html`, `large.bin`, `.secret` and `sub/index.html`, next to a file that must not be served.
    /// - Parameter stamp: changes what fstat(2) tells; by default the files are older than they are.
    private func serveFiles(
        stamp: @escaping @Sendable (inout stat) -> Void = { status in
            status.st_mtim.tv_sec -= 100
            status.st_ctim.tv_sec -= 100
        }
    ) throws -> String {
        let folder = Folder()
        atEnd { withExtendedLifetime(folder) {} }
        let base = folder.path
        let names = [
            "www/page.html", "www/large.bin", "www/.secret", "www/sub/index.html", "www/.well-known/acme/token",
            "www/.well-known/.hidden", "www/sub/.well-known/x", "outside", "www/html", "www/sub/js", "www/a.b/css",
            "www/page.HTML",
        ]
        for name in ["www", "www/sub", "www/sub/.well-known", "www/.well-known", "www/.well-known/acme", "www/a.b"] {
            mkdir("\(base)/\(name)", 0o755)
        }
        var calls = FileSyscalls()
        calls.status = { fd, status in
            let result = FileSyscalls.real.status(fd, &status)
            stamp(&status)
            return result
        }
        let files = StaticFiles(
            "\(base)/www", index: "index.html", headers: ["Cache-Control": "max-age=60", "Accept-Ranges": "none"],
            on: .shared, calls: calls)
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
        _ address: String, _ headers: Headers = [:], _ method: ReactorHTTP.Method = .get
    ) throws -> (Fetched, [UInt8]) {
        try hang(
            client.fetch(address, method, headers: headers).then { response in
                response.body.bytes().map { (response, $0) }
            }, timeout: patience)
    }

    @Test(
        .served,
        arguments: [
            "/page.html", "/bare/page.html", "/sub", "/sub/", "/part/sub/", "/bare/sub/", "/alias/",
            "/.well-known/acme/token", "/part/.well-known/acme/token", "/bare/.well-known/acme/token",
            "/html", "/sub/js", "/a.b/css", "/page.HTML",
        ])
    func filesAreServedWithTheirType(_ path: String) throws {
        let (page, text) = try get(serveFiles() + path)
        expect(page.status == .ok && text == Array("0123456789".utf8))
        let hasNoExtension = ["token", "/html", "/js", "/css"].contains { path.hasSuffix($0) }
        let type = hasNoExtension ? "application/octet-stream" : "text/html; charset=utf-8"
        expectEqual(page.headers["content-type"], type)
        expect(page.headers["content-length"] == "10" && page.headers.all("accept-ranges") == ["none"])
    }

    @Test(.served) func aLargeFileIsServed() throws {
        let address = try serveFiles() + "/large.bin"
        expectEqual(try get(address).1, Self.large)
        let (head, none) = try get(address, [:], .head)
        expect(head.headers["content-length"] == "1000000" && none.isEmpty)
        expectEqual(try get(address, [:], .post).0.status, .methodNotAllowed)
    }

    @Test(
        .served,
        arguments: [
            "/none", "/.secret", "/../outside", "/%2e%2e/outside", "/..%2foutside", "/%2e%2e%2foutside",
            "/sub/../../outside",
            "/page.html%00", "/page.html/", "/%", "/%zz", "/%+1", "/page.html/x", "//../outside",
            "/.well-known/.hidden", "/.well-known/none", "/.well-known/../.secret", "/sub/.well-known/x",
            "/bare/.secret",
            "/bare/../outside", "/part../outside", "/.wellknown/x", "/.well-known/",
        ])
    func nothingElseIsServed(_ path: String) throws {
        let address = try serveFiles()
        let (response, _) = try get(address + path)
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
        let (response, bytes) = try get(address + "/page.html", ["Range": range])
        expect(response.status.code == code && bytes == Array(text.utf8))
        expectEqual(response.headers["content-range"], field)
        // Section 14.2: only GET has ranges.
        let (head, _) = try get(address + "/page.html", ["Range": range], .head)
        expect(head.status == .ok && head.headers["content-length"] == "10" && !head.headers.has("content-range"))
    }

    // MARK: Folders

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
        _ = try serveFiles()
        let answer = try conversation("GET \(target) HTTP/1.1\r\nHost: x\r\n\r\n")
        expect(statuses(answer) == [301] && answer.contains("\r\nLocation: \(expected)\r\n"), "\(answer)")
    }

    /// A browser would take this for a server's name.
    @Test(.served, arguments: ["/\\host/..part", "//host/..part", "/\\/host/..part"])
    func aRedirectNamesNoServer(_ path: String) throws {
        try serve { request in
            .later(StaticFiles("/").response(to: request, path: "tmp"))
        }
        let answer = try conversation("GET \(path) HTTP/1.1\r\nHost: x\r\n\r\n")
        expect(answer.contains("\r\nLocation: /host/..part/\r\n"), "\(answer)")
    }

    @Test(.served) func anIndexThatIsAFolderIsNotFound() throws {
        let files = StaticFiles("/", index: "tmp")
        try serve { .later(files.response(to: $0)) }
        try expect([404], ServerTests.get)
    }

    // MARK: Conditions

    /// RFC 9110, section 13.
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
            (["If-None-Match": "TAG"], 304), (["If-None-Match": "\"x\", W/TAG"], 304), (["If-None-Match": "*"], 304),
            (["If-Modified-Since": "DATE"], 304), (["If-None-Match": "\"x\"", "If-Modified-Since": "DATE"], 200),
            (["Range": "bytes=0-1", "If-Range": "TAG"], 206), (["Range": "bytes=0-1", "If-Range": "\"x\""], 200),
        ] as [([String: String], Int)])
    func preconditions(_ fields: [String: String], _ code: Int) throws {
        let address = try serveFiles()
        let (first, _) = try get(address + "/page.html")
        let (tag, date) = (try #require(first.headers["etag"]), try #require(first.headers["last-modified"]))
        var headers = Headers()
        for (name, value) in fields {
            headers[name] = value.components("TAG").joined(separator: tag).components("DATE").joined(separator: date)
        }
        for method in [ReactorHTTP.Method.get, .head] {
            let (response, bytes) = try get(address + "/page.html", headers, method)
            expectEqual(response.status.code, code == 206 && method == .head ? 200 : code)
            expect(code != 304 || response.headers["etag"] == tag)
            expect(method == .head || (code < 300) == !bytes.isEmpty)
        }
    }

    /// What the kernel tells of a file.
    struct Stamps: Sendable {
        var inode: ino_t = 7
        /// Seconds before now, or absolute ones if they are 0 or 1; and nanoseconds.
        var modified: (Int, Int), changed: (Int, Int)

        static let now = time(nil)

        func stamp(_ status: inout stat) {
            func time(_ stamp: (Int, Int)) -> timespec {
                timespec(tv_sec: stamp.0 == 0 || stamp.0 == 1 ? stamp.0 : Self.now - stamp.0, tv_nsec: stamp.1)
            }
            (status.st_ino, status.st_mtim, status.st_ctim) = (inode, time(modified), time(changed))
        }
    }

    /// The stamps, whether there is a strong tag, whether there is a date, and whether the tag is good for anything.
    private static let stamps: [(Stamps, isStrong: Bool, hasDate: Bool, isKnown: Bool)] = [
        (Stamps(modified: (100, 5), changed: (100, 5)), true, true, true),
        (Stamps(modified: (9000, 0), changed: (100, 5)), true, true, true),
        // Whole seconds.
        (Stamps(modified: (100, 0), changed: (100, 0)), false, true, true),
        // Of a build that is reproducible: unpacked, and in an image.
        (Stamps(modified: (0, 0), changed: (100, 5)), false, false, true),
        (Stamps(modified: (1, 0), changed: (100, 5)), false, false, true),
        (Stamps(modified: (0, 0), changed: (0, 0)), false, false, false),
        (Stamps(modified: (1, 0), changed: (1, 0)), false, false, false),
        (Stamps(modified: (9000, 0), changed: (1, 0)), false, true, false),
        // Of a clock that is ahead.
        (Stamps(modified: (-900, 5), changed: (-900, 5)), false, false, false),
        (Stamps(modified: (9000, 0), changed: (-900, 5)), false, false, false),
        (Stamps(modified: (-9000, 5), changed: (100, 5)), true, false, true),
    ]

    private static let old = "Sun, 06 Nov 1994 08:49:37 GMT"

    @Test(.served, arguments: stamps.indices) func validatorsSayNoMoreThanTheStampsProve(_ index: Int) throws {
        let (stamps, isStrong, hasDate, isKnown) = Self.stamps[index]
        let address = try serveFiles { stamps.stamp(&$0) } + "/page.html"
        let first = try get(address).0.headers
        let tag = try #require(first["etag"])
        expectEqual(!tag.hasPrefix("W/"), isStrong)
        let date = first["last-modified"]
        expectEqual(date != nil, hasDate)
        let conditions =
            [
                (["If-None-Match": tag], isKnown ? 304 : 200), (["If-None-Match": "*"], 304),
                (["If-Match": tag], isStrong ? 200 : 412),
                (["Range": "bytes=0-1", "If-Range": tag], isStrong ? 206 : 200),
                (["If-Modified-Since": date ?? Self.old], hasDate ? 304 : 200),
                (["Range": "bytes=0-1", "If-Range": date ?? Self.old], hasDate ? 206 : 200),
                (["If-Unmodified-Since": Self.old], hasDate ? 412 : 200),
            ] as [([String: String], Int)]
        for (fields, code) in conditions {
            var headers = Headers()
            for (name, value) in fields { headers[name] = value }
            let got = try get(address, headers).0.status.code
            expect(got == code, "\(fields): \(got)")
        }
    }

    @Test func aChangeIsSettledAfterTwoSeconds() {
        var status = stat()
        (status.st_mtim, status.st_ctim) = (timespec(tv_sec: 1000, tv_nsec: 5), timespec(tv_sec: 1000, tv_nsec: 5))
        var tags: Set<String> = []
        for second in 999...1003 {
            let version = FileVersion(status, now: timespec(tv_sec: second, tv_nsec: 0))
            expectEqual(version.isStrong, second > 1001)
            expectEqual(version.second, second > 1001 ? 1000 : nil)
            tags.insert(version.tag)
        }
        // One for each moment before, and then always the same.
        expectEqual(tags.count, 4)
    }

    /// Of the same size, and often with the same modification time.
    @Test(
        .served,
        arguments: [
            (Stamps(modified: (9000, 0), changed: (100, 5)), Stamps(modified: (9000, 0), changed: (50, 5))),
            (Stamps(modified: (9000, 0), changed: (100, 5)), Stamps(modified: (9000, 0), changed: (100, 6))),
            (Stamps(modified: (9000, 0), changed: (100, 5)), Stamps(inode: 8, modified: (9000, 0), changed: (100, 5))),
            (Stamps(modified: (9000, 5), changed: (100, 5)), Stamps(modified: (9000, 6), changed: (100, 5))),
            (Stamps(modified: (100, 5), changed: (100, 5)), Stamps(modified: (9000, 5), changed: (50, 5))),
            (Stamps(modified: (0, 0), changed: (100, 5)), Stamps(modified: (0, 0), changed: (50, 5))),
            (Stamps(modified: (1, 0), changed: (1, 0)), Stamps(modified: (1, 0), changed: (1, 0))),
            (Stamps(modified: (-900, 5), changed: (-900, 5)), Stamps(modified: (-900, 5), changed: (-900, 5))),
            (Stamps(modified: (100, 0), changed: (100, 0)), Stamps(modified: (50, 0), changed: (50, 0))),
        ])
    func aReplacedFileIsNotCurrent(_ old: Stamps, _ new: Stamps) throws {
        let stamps = LockedValue(old)
        let address = try serveFiles { status in stamps.withLock { $0.stamp(&status) } } + "/page.html"
        let first = try get(address).0.headers
        stamps.withLock { $0 = new }
        let tag = try #require(first["etag"])
        var conditions: [Headers] = [["If-None-Match": tag], ["Range": "bytes=0-1", "If-Range": tag]]
        // A client that has a date has read the file two seconds after it, so a later change has another.
        if let date = first["last-modified"], old.changed.0 != new.changed.0 {
            conditions += [["If-Modified-Since": date], ["Range": "bytes=0-1", "If-Range": date]]
            expectEqual(try get(address, ["If-Unmodified-Since": date]).0.status.code, 412)
        }
        for headers in conditions {
            let (response, bytes) = try get(address, headers)
            expect(response.status == .ok && bytes.count == 10, "\(headers): \(response.status)")
        }
        expectEqual(try get(address, ["If-Match": tag]).0.status.code, 412)
    }

    // MARK: What is no file

    /// open(2) fails with ENXIO for a socket.
    @Test(.inRealTime) func whatIsNoFileIsNotFound() throws {
        let folder = Folder()
        let socket = try Listener.bind("unix:\(folder["socket"])")
        defer { socket.close() }
        mkfifo(folder["fifo"], 0o644)
        symlink("nowhere", folder["dangling"])
        symlink("loop", folder["loop"])
        symlink("/dev/null", folder["null"])
        let files = StaticFiles(folder.path)
        try serve { request in .later(files.response(to: request)) }
        for (name, code) in [("socket", 404), ("fifo", 404), ("dangling", 404), ("loop", 403), ("null", 404)] {
            try expect([code], "GET /\(name) HTTP/1.1\r\nHost: x\r\n\r\n")
        }
        try endServer()
        expect(errors.isEmpty)
    }
}
