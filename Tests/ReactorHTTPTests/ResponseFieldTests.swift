/// The meaning of response fields, and when they are ignored.
struct ResponseFieldTests {
    /// Fields that do not delimit a body.
    private static let framings = [
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Transfer-Encoding: identity\r\n", "Transfer-Encoding: gzip, chunked\r\n", "Content-Length: five\r\n",
        "Content-Length: \r\n", "Transfer-Encoding: chunked, chunked\r\n", "Transfer-Encoding: ,\r\n",
        "Content-Length: 5, 5\r\n", "Content-Length: -1\r\n", "Transfer-Encoding: chunked\r\n", "Content-Length: 5\r\n",
    ]

    /// RFC 9112, section 6.3, rule 1: "regardless of the header fields".
    @Test(arguments: framings) func aResponseWithoutABodyNeedsNoFraming(_ fields: String) throws {
        for (status, method) in [(200, Method.head), (404, .head), (204, .get), (304, .get), (204, .delete)] {
            let got = try fetched("HTTP/1.1 \(status) x\r\n\(fields)\r\n", method)
            expect(got == (status, ""), "\(got) for \(method) \(status) \(fields)")
            // Neither does one that precedes it.
            let early = try fetched("HTTP/1.1 103 x\r\n\(fields)\r\nHTTP/1.1 \(status) x\r\n\r\n", method)
            expect(early == (status, ""), "\(early)")
        }
    }

    /// RFC 9110, section 9.3.6: those of CONNECT mean nothing either.
    @Test(.inRealTime, arguments: framings) func anOpenedTunnelNeedsNoFraming(_ fields: String) throws {
        try servePeer { head, connection in
            let isOpen = !head.hasPrefix("CONNECT")
            return connection.write(
                isOpen ? "HTTP/1.1 200 x\r\nContent-Length: 2\r\n\r\nok" : "HTTP/1.1 200 x\r\n\(fields)\r\n")
        }
        var options = HTTPClient.Options()
        options.proxies = Proxies(https: "http://\(address)")
        options.startTLS = { connection, _ in .value(connection) }
        let text = HTTPClient(options).fetch("https://a.example/").then { $0.body.text() }
        expectEqual(try hang(text, timeout: patience), "ok")
    }

    /// The server may still send a body, which must not be taken for the next response.
    @Test(.inRealTime, arguments: [("Transfer-Encoding: chunked\r\n", 1), ("Content-Length: 5, 5\r\n", 2)])
    func aConnectionWithSuchFieldsIsNotUsedAgain(_ fields: String, _ connections: Int) throws {
        var ports: Set<UInt16> = []
        try servePeer { _, connection in
            ports.insert(connection.peerAddress!.port)
            return connection.write("HTTP/1.1 200 x\r\n\(fields)\r\n")
        }
        for _ in 0..<2 { _ = try hang(client.fetch("http://\(address)/", .head), timeout: patience) }
        expectEqual(ports.count, connections, fields)
    }

    /// RFC 9112, section 6.3, rule 4.
    @Test(arguments: ["identity", "gzip", "chunked, gzip", "chunked, identity", "gzip, identity"])
    func whereChunkedIsNotLastTheBodyGoesOnUntilTheEnd(_ codings: String) throws {
        let got = try fetched("HTTP/1.1 200 x\r\nTransfer-Encoding: \(codings)\r\n\r\n3\r\nabc\r\n")
        expect(got == (200, "3\r\nabc\r\n"), "\(got)")
    }

    @Test(arguments: [
        "Transfer-Encoding: gzip, chunked", "Transfer-Encoding: chunked, chunked", "Transfer-Encoding: chunked,",
        "Transfer-Encoding: gzip\r\nContent-Length: 3", "Transfer-Encoding: identity\r\nContent-Length: 3",
        "Content-Length: 3, 3", "Content-Length: +3", "Content-Length:", "Content-Length: 3\r\nContent-Length: 4",
    ])
    func aBodyThatCannotBeDelimitedIsAnError(_ fields: String) throws {
        let error = #expect(throws: HTTPError.self) { _ = try fetched("HTTP/1.1 200 x\r\n\(fields)\r\n\r\nabc") }
        expectEqual(error?.status, Status(502))
    }

    // MARK: Folded fields

    /// The fields of a response with these lines, in one piece or byte by byte.
    private func headers(_ lines: String, trailers: String = "", isTrickled: Bool = false) throws -> (Headers, Headers)
    {
        let answer = "HTTP/1.1 200 x\r\n\(lines)Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\(trailers)\r\n"
        try servePeer { connection in
            connection.readLine().then { _ in
                if !isTrickled { return connection.write(answer) }
                return forEach(Array(answer.utf8)) { byte in
                    connection.write([byte]).then { after(.milliseconds(10)) }
                }
            }
        }
        let got = client.fetch("http://\(address)/").then { response in
            response.body.text().map { _ in (response.headers, response.body.trailers) }
        }
        return try hang(got, timeout: .seconds(3600))
    }

    /// RFC 9112, sections 5.1 and 5.2.
    @Test(
        .inLoop,
        arguments: [
            ("A: b\r\n c\r\n", "b c"), ("A: b\r\n\tc\r\n", "b c"), ("A: b \t\r\n \t c\r\n", "b c"),
            ("A:\r\n b\r\n", "b"), ("A: b\r\n \r\n c\r\n", "b c"), ("A: b\r\n c\r\n d\r\n e\r\n", "b c d e"),
            ("A: b\r\n X: c\r\n", "b X: c"), ("A: b\r\n \r\n", "b"), ("A : b\r\n", "b"), ("A \t: b\r\n", "b"),
            ("A : b\r\n :c\r\n", "b :c"), ("X: y\r\n z\r\nA: b\r\nC: d\r\n e\r\n", "b"),
        ])
    func foldedFieldsAndBlanksBeforeAColonAreAccepted(_ lines: String, _ value: String) throws {
        for isTrickled in [false, true] {
            let got = try headers(lines, trailers: lines, isTrickled: isTrickled)
            expectEqual(got.0["a"], value, lines)
            expectEqual(got.1["a"], value, "\(lines) as a trailer")
            expect(!"\(got.0)".contains("\r\n "))
        }
    }

    @Test func aFoldedFieldDelimitsTheBody() throws {
        let length = try fetched("HTTP/1.1 200 x\r\nContent-Length:\r\n 3\r\n\r\nabcde")
        expect(length == (200, "abc"))
        let chunks = try fetched("HTTP/1.1 200\r\nTransfer-Encoding:\r\n\tchunked\r\n\r\n3\r\nabc\r\n0\r\n\r\nmore")
        expect(chunks == (200, "abc"))
        let name = try fetched("HTTP/1.1 200 x\r\nContent-Length : 3\r\n\r\nabcde")
        expect(name == (200, "abc"))
        // The continuation of another field is not a field.
        let hidden = try fetched("HTTP/1.1 200 x\r\nA: b\r\n Content-Length: 3\r\n\r\nabcde")
        expect(hidden == (200, "abcde"))
        #expect(throws: HTTPError.self) { _ = try fetched("HTTP/1.1 200 x\r\nContent-Length: 1\r\n 3\r\n\r\nabc") }
    }

    @Test(
        .inLoop,
        arguments: [
            " A: b\r\n", "\tA: b\r\n", "A\r\n : b\r\n", "A b: c\r\n", ": b\r\n", " : b\r\n", "A: b\r\n c\u{0}\r\n",
            "A\r\n",
        ])
    func whatIsNoFieldIsStillRefused(_ lines: String) throws {
        #expect(throws: HTTPError.self) { _ = try headers(lines) }
        #expect(throws: HTTPError.self) { _ = try headers("", trailers: lines) }
    }

    @Test func foldedFieldsCountForTheLimits() throws {
        var options = HTTPClient.Options()
        options.maxHead = 1000
        options.maxFields = 2
        let lines = String(repeating: " x\r\n", count: 100)
        let got = try fetched("HTTP/1.1 204 x\r\nA: b\r\n\(lines)C: d\r\n\r\n", .get, options)
        expectEqual(got.status, 204)
        #expect(throws: HTTPError.self) {
            _ = try fetched("HTTP/1.1 204 x\r\nA: b\r\n\(lines)\(lines)\(lines)C: d\r\n\r\n", .get, options)
        }
        #expect(throws: HTTPError.self) {
            _ = try fetched("HTTP/1.1 204 x\r\nA: b\r\n c\r\nC: d\r\nE: f\r\n\r\n", .get, options)
        }
    }
}
