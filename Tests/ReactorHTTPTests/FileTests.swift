import Glibc
import Promises
import Reactor
import ReactorHTTP
import Testing

@Suite struct FileTests {
    /// A folder with `page.html`, `large.bin`, `.secret` and `sub/index.html`, and beside it a file that nobody may get.
    private func withFiles(_ body: (HTTPClient, _ address: String) throws -> Void) throws {
        var template = Array("/tmp/reactor-http-tests-XXXXXX".utf8CString)
        let base = try #require(mkdtemp(&template)).withMemoryRebound(to: CChar.self, capacity: 1) {
            String(cString: $0)
        }
        let names = ["www/page.html", "www/large.bin", "www/.secret", "www/sub/index.html", "outside"]
        defer {
            for name in names { unlink("\(base)/\(name)") }
            for name in ["www/sub", "www", ""] { rmdir("\(base)/\(name)") }
        }
        mkdir("\(base)/www", 0o755)
        mkdir("\(base)/www/sub", 0o755)
        let files = StaticFiles("\(base)/www")
        try withServer({ .later(files.response(to: $0)) }) { address, _ in
            for name in names {
                let bytes = name == "www/large.bin" ? Self.large : Array("0123456789".utf8)
                try hang(writeFile(bytes, to: "\(base)/\(name)"), timeout: patience)
            }
            let client = HTTPClient()
            try body(client, "http://\(address)")
            client.close()
        }
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

    @Test func filesAreServedWithTheirType() throws {
        try withFiles { client, address in
            let (page, text) = try get(client, address + "/page.html")
            #expect(page.status == .ok && page.headers["content-type"] == "text/html; charset=utf-8")
            #expect(text == Array("0123456789".utf8))
            let (_, bytes) = try get(client, address + "/large.bin")
            #expect(bytes == Self.large)
            let (index, _) = try get(client, address + "/sub")
            #expect(index.status == .ok && index.headers["content-length"] == "10")
            let (head, none) = try get(client, address + "/large.bin", [:], .head)
            #expect(head.headers["content-length"] == "1000000" && none.isEmpty)
            let (refused, _) = try get(client, address + "/page.html", [:], .post)
            #expect(refused.status == .methodNotAllowed)
        }
    }

    @Test(arguments: [
        "/none", "/.secret", "/../outside", "/%2e%2e/outside", "/..%2foutside", "/%2e%2e%2foutside",
        "/sub/../../outside",
        "/page.html%00", "/page.html/", "/%", "/%zz", "/%+1", "/page.html/x", "//../outside",
    ])
    func nothingElseIsServed(_ path: String) throws {
        try withFiles { client, address in
            let (response, _) = try get(client, address + path)
            #expect(response.status == .notFound)
        }
    }

    /// RFC 9110, section 14.
    @Test(arguments: [
        ("bytes=0-0", 206, "0", "bytes 0-0/10"), ("bytes=8-", 206, "89", "bytes 8-9/10"),
        ("bytes=-3", 206, "789", "bytes 7-9/10"), ("bytes=2-99", 206, "23456789", "bytes 2-9/10"),
        ("bytes=-99", 206, "0123456789", "bytes 0-9/10"), ("bytes=10-", 416, "", "bytes */10"),
        ("bytes=-0", 416, "", "bytes */10"), ("bytes=3-1", 200, "0123456789", nil),
        ("bytes=0-1,4-5", 200, "0123456789", nil),
        ("bytes=a-b", 200, "0123456789", nil), ("lines=0-1", 200, "0123456789", nil),
        ("bytes=99999999999999999999-", 416, "", "bytes */10"),
    ])
    func ranges(_ range: String, _ code: Int, _ text: String, _ field: String?) throws {
        try withFiles { client, address in
            let (response, bytes) = try get(client, address + "/page.html", ["Range": range])
            #expect(response.status.code == code && bytes == Array(text.utf8))
            #expect(response.headers["content-range"] == field)
        }
    }

    /// RFC 9110, section 13.
    @Test func whatTheClientHasIsNotSentAgain() throws {
        try withFiles { client, address in
            let (first, _) = try get(client, address + "/page.html")
            let tag = try #require(first.headers["etag"])
            let date = try #require(first.headers["last-modified"])
            for headers: Headers in [
                ["If-None-Match": tag], ["If-None-Match": "\"x\", W/\(tag)"], ["If-None-Match": "*"],
                ["If-Modified-Since": date],
            ] {
                let (response, bytes) = try get(client, address + "/page.html", headers)
                #expect(response.status == .notModified && bytes.isEmpty && response.headers["etag"] == tag)
            }
            // A tag that differs makes the date not count.
            let (changed, _) = try get(
                client, address + "/page.html", ["If-None-Match": "\"x\"", "If-Modified-Since": date])
            #expect(changed.status == .ok)
            let (part, _) = try get(client, address + "/page.html", ["Range": "bytes=0-1", "If-Range": tag])
            let (whole, _) = try get(client, address + "/page.html", ["Range": "bytes=0-1", "If-Range": "\"x\""])
            #expect(part.status.code == 206 && whole.status == .ok)
        }
    }
}
