/// Requests that differ in little from one another: each is answered, or refused at once although the client would send
/// more. `StrictnessTests` has one for each section of the RFCs.
struct RequestFormTests {
    private static let get = ServerTests.get

    private static func post(_ fields: String, _ body: String = "") -> String { StrictnessTests.post(fields, body) }
    private static func chunks(_ body: String) -> String { StrictnessTests.chunks(body) }
    private static func long(_ count: Int, _ part: String = "a") -> String { String(repeating: part, count: count) }

    private static let refused: [(status: Int, requests: [String])] = [
        (
            400,
            [
                "GET\r\n", "GET /\r\n", "GET / HTTP/1.1 \r\n", " GET / HTTP/1.1\r\n", "G\0T / HTTP/1.1\r\n",
                "G(T / HTTP/1.1\r\n", "GET /\u{7F} HTTP/1.1\r\n", "GET /\u{FF} HTTP/1.1\r\n", "GET a HTTP/1.1\r\n",
                "GET / HTTP/1\r\n", "GET / HTTP/1.x\r\n", "GET / HTTP/11\r\n", "GET / HTTP/1.1\r\r\nHost: x\r\n\r\n",
                "GET / HTTP/1.1\r\nHost: x\r\n\n", "\n" + get, "GET / HTTP/1.1\r\nHost: x\r\nA\r\n",
                "GET / HTTP/1.1\r\nHost: x\r\n folded: b\r\n", "GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n\tfolded\r\n",
                "GET / HTTP/1.1\r\nHost: x\r\n(A): b\r\n", "GET / HTTP/1.0\r\nHost: x\r\nHost: y\r\n\r\n",
                get + "GET / HTTP/1.1\r\nHost: x\r\nhost: y\r\n\r\n" + get,
            ]
        ),
        (
            400,
            [
                "x/y", "a b", "h:-1", "h:80:80", "[", "]", "[]", "[::1", "::1", "[::1]x", "[::1]80", "[::1]:x", "h[]",
                "[[::1]]", "[x]", ":80",
            ].map { "GET / HTTP/1.1\r\nHost: \($0)\r\n\r\n" }
        ),
        (
            400,
            ["", " ", "-5", "0x5", "5 5", "5.0", "\u{B2}", "5;", "-0"].map { post("Content-Length:" + $0, "hello") }
                + ["", ",", ",chunked", "chunked,", "chunked, chunked", "\u{B}chunked"].map {
                    post("Transfer-Encoding: " + $0)
                }
                + [
                    "Content-Length: 0\r\nTransfer-Encoding:",
                    "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
                ].map {
                    post($0)
                }
        ),
        (
            400,
            [
                "x\r\n", "\r\n", "-1\r\n", "1 1\r\na", " 1\r\na", " 3;x\r\nabc", "\t3;x\r\nabc", "1 \r\na", ";\r\n",
                "1;\0\r\n", "\u{EF}\u{BC}\u{91}\r\n", "5;" + long(300), "1\r\naX\r\n", "1\r\na\n0\r\n\r\n",
                "0\r\nA : b\r\n\r\n", "0\r\n folded\r\n\r\n", "0\r\nA: b\r\n c\r\n\r\n", "0x2\r\n", "+2\r\n",
                "0\r\nA\r\n\r\n", "0\r\n\n",
            ].map(chunks)
        ),
        (501, ["gzip", "identity", "xchunked", "chunked;q=1"].map { post("Transfer-Encoding: " + $0) }),
        (505, ["GET / HTTP/0.9\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"]),
        (
            413,
            ["1048577", "18446744073709551618", long(200, "9")].map { post("Content-Length: " + $0) }
                + ["100001\r\n", "10000000000000002\r\n", "fffffffffffffffff\r\n", "1\r\na\r\n100000\r\n"].map(chunks)
        ),
        (414, [long(16_384), long(16_384) + " HTTP/1.1\r\n"].map { "GET /" + $0 } + [long(8_193, "\r\n")]),
        (
            431,
            [
                "GET / HTTP/1.1\r\nHost: x\r\nA: " + long(16_384),
                "GET / HTTP/1.1\r\nHost: x\r\n" + long(100, "A: b\r\n"),
                chunks("0\r\n" + long(3, "A: \(long(8_000))\r\n")),
            ]
        ),
    ]

    @Test(.inLoop, arguments: 0..<refused.count) func isRefusedAtOnce(group: Int) throws {
        let (status, requests) = Self.refused[group]
        for request in requests {
            let client = try serveClient(echo)
            client.write(Self.bytes(request)).cauterize()
            let answers = try readToEnd(client)
            expectEqual(statuses(answers).last, status, "\(request.debugDescription.prefix(100)): \(answers)")
            expectEqual(answers.components("\r\nConnection: close\r\n").count, 2)
        }
    }

    private static let answered: [String] = [
        "GET /?query=/echo HTTP/1.1\r\nHost:x:80\r\n\r\n", "GET HTTP://x HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET http://x?a/b HTTP/1.1\r\nHost: x\r\n\r\n", "GET / HTTP/1.7\r\nHost: x\r\n\r\n",
        "GET / HTTP/1.1\r\nHOST: [::1]:8080 \t\r\nX: a\tb\u{FF}\r\nEmpty:\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\n\r\n", "\r\nGET / HTTP/1.1\r\nHost: x\r\nA:\tb\r\n\r\n",
        "BREW // HTTP/1.1\r\nHost: x\r\n\r\n", post("Content-Length: 5", "hello") + "\r\n", post("Content-Length: 0"),
        chunks("5\r\nhello\r\n0\r\n\r\n"), chunks("0\r\n\r\n"), chunks("A \t;x\r\n0123456789\r\n0;y\r\n\r\n"),
        chunks("005;a=b;c=\"d\"\r\nhello\r\n00\r\nTrailer: x\r\nOther: y\r\n\r\n"),
        post("Transfer-Encoding: Chunked ", "1\r\na\r\n0\r\n\r\n"),
    ]
    private static let hosts = [
        "x:", "x:80", "a.b-c_d~%20", "1.2.3.4:5", "[::1]", "[::1]:", "[fe80::1:A]:80", "[::1.2.3.4]",
    ]

    /// At whatever byte it is split: that of a host inside it. The next request shows where it ends.
    @Test(.inLoop, arguments: answered + hosts.map { "GET / HTTP/1.1\r\nHost: \($0)\r\n\r\n" })
    func isAnswered(request: String) throws {
        let bytes = Self.bytes(request + Self.get)
        let line = "GET / HTTP/1.1\r\nHost: "
        for place in (request.hasPrefix(line) ? line.utf8.count : 1)...bytes.count - Self.get.utf8.count {
            let client = try serveClient(echo)
            let sent = client.write(Array(bytes[..<place])).then { after(.milliseconds(1)) }
                .then { client.write(Array(bytes[place...])) }.then { client.shutdownWrite() }
            sent.cauterize()
            let answers = try readToEnd(client)
            expectEqual(statuses(answers), [200, 200], "split at \(place): \(answers)")
            client.close()
        }
    }

    @Test(
        .inLoop,
        arguments: [
            (1, "", true), (1, "close", false), (1, "keep-alive", true), (1, "a, CLOSE ,b", false),
            (1, "a\r\nConnection: close", false), (1, "close, keep-alive", false), (1, "closed", true), (0, "", false),
            (0, "Keep-Alive", true), (0, "close", false),
        ])
    func theConnectionIsKeptOrEnded(version: Int, option: String, isKept: Bool) throws {
        let client = try serveClient(echo)
        let head = "GET / HTTP/1.\(version)\r\nHost: x\r\n" + (option.isEmpty ? "" : "Connection: \(option)\r\n")
        client.write(head + "\r\n" + Self.get).then { client.shutdownWrite() }.cauterize()
        let answers = try readToEnd(client)
        expect(statuses(answers) == (isKept ? [200, 200] : [200]))
        expectEqual(answers.contains("\r\nConnection: close\r\n"), !isKept)
        expect(answers.contains("\r\nConnection: keep-alive\r\n") == (isKept && version == 0))
    }

    /// One byte for each scalar.
    private static func bytes(_ text: String) -> [UInt8] { text.unicodeScalars.map { UInt8($0.value) } }
}
