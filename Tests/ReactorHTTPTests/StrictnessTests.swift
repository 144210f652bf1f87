/// A message that two recipients could delimit or understand differently is refused, with the section that says why.
struct StrictnessTests {
    static func post(_ fields: String, _ body: String = "") -> String {
        "POST / HTTP/1.1\r\nHost: x\r\n\(fields)\r\n\r\n\(body)"
    }

    static func chunks(_ body: String) -> String { post("Transfer-Encoding: chunked", body) }

    private static let hidden = "GET /hidden HTTP/1.1\r\nHost: x\r\n\r\n"

    @Test(
        .served,
        arguments: [
            // The first line, and the ends of lines.
            ("9112 2.2 empty lines before", "\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", [200]),
            ("9112 2.2 bare LF", "GET / HTTP/1.1\nHost: x\n\n", [400]),
            ("9112 2.2 bare LF in fields", "GET / HTTP/1.1\r\nHost: x\nA: b\r\n\r\n", [400]),
            ("9112 2.2 bare CR", "GET / HTTP/1.1\r\nHost: x\r\nA: b\rC: d\r\n\r\n", [400]),
            ("9112 2.2 blank before a field", "GET / HTTP/1.1\r\n Host: x\r\n\r\n", [400]),
            ("9112 2.3 lower case", "GET / http/1.1\r\nHost: x\r\n\r\n", [400]),
            ("9112 3 two spaces", "GET  / HTTP/1.1\r\nHost: x\r\n\r\n", [400]),
            ("9112 3.2.2 absolute-form", "GET http://x/a?b HTTP/1.1\r\nHost: x\r\n\r\n", [200]),
            ("9112 3.2.2 account", "GET http://a@x/ HTTP/1.1\r\nHost: x\r\n\r\n", [400]),
            ("9110 4.2.1 no host", "GET http:///a HTTP/1.1\r\nHost: x\r\n\r\n", [400]),
            ("9112 3.2.1 fragment", "GET /a#b HTTP/1.1\r\nHost: x\r\n\r\n", [400]),
            ("9112 3.2.3 authority-form", "CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n", [400]),
            ("9112 3.2.4 asterisk-form", "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", [200]),
            ("9112 3.2 no Host", "GET / HTTP/1.1\r\n\r\n", [400]),
            ("9110 4.2.1 empty Host", "GET / HTTP/1.1\r\nHost:\r\n\r\n", [400]),
            ("9112 3.2 no host", "GET / HTTP/1.1\r\nHost: a@b\r\n\r\n", [400]),
            // Fields.
            ("9112 5.1 blank before the colon", "GET / HTTP/1.1\r\nHost: x\r\nA : b\r\n\r\n", [400]),
            ("9112 5.1 no name", "GET / HTTP/1.1\r\nHost: x\r\n: b\r\n\r\n", [400]),
            ("9110 5.5 NUL", "GET / HTTP/1.1\r\nHost: x\r\nA: b\0\r\n\r\n", [400]),
            (
                "9110 5.5 control in a long value", "GET / HTTP/1.1\r\nHost: x\r\nA: 0123456789abcdefg\u{7F}h\r\n\r\n",
                [400]
            ),
            ("9110 10.1.1 expectation", "GET / HTTP/1.1\r\nHost: x\r\nExpect: magic\r\n\r\n", [417]),
            // The length of a body.
            (
                "9112 6.1 length and chunks",
                post("Content-Length: 5\r\nTransfer-Encoding: chunked", "0\r\n\r\n" + hidden), [400]
            ),
            (
                "9112 6.1 chunks and length",
                post("Transfer-Encoding: chunked\r\nContent-Length: 5", "0\r\n\r\n" + hidden), [400]
            ),
            ("9112 6.1 HTTP/1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden, [400]),
            ("9112 6.1 chunked not last", post("Transfer-Encoding: chunked, gzip"), [400]),
            ("9112 6.3 equal lengths", post("Content-Length: 2\r\nContent-Length: 2", "ab" + hidden), [400]),
            ("9112 6.1 tab before a coding", post("Transfer-Encoding:\tchunked", "0\r\n\r\n" + hidden), [400]),
            ("9112 6.1 tab behind a coding", post("Transfer-Encoding: chunked\t", "0\r\n\r\n" + hidden), [400]),
            ("9112 6.3 two lengths", post("Content-Length: 2\r\nContent-Length: 3", "abc" + hidden), [400]),
            ("9112 6.3 list of lengths", post("Content-Length: 2, 2", "ab"), [400]),
            ("9112 6.2 sign", post("Content-Length: +2", "ab"), [400]),
            // Chunks.
            ("9112 7.1 chunks", chunks("2;a=b\r\nab\r\n0\r\nT: x\r\n\r\n" + hidden), [200, 200]),
            ("9112 7.1 bare LF", chunks("2\nab\r\n0\r\n\r\n" + hidden), [400]),
            ("9112 7.1.1 LF in an extension", chunks("2;\nxx\r\nab\r\n0\r\n\r\n" + hidden), [400]),
            ("9112 7.1.1 long extensions", chunks(chunk(1, extension: 200, 100) + "0\r\n\r\n" + hidden), [400]),
            (
                "9112 7.1.1 many zeros",
                chunks(
                    String(repeating: String(repeating: "0", count: 200) + "1\r\na\r\n", count: 100) + "0\r\n\r\n"
                        + hidden), [400]
            ),
            (
                "9112 7.1.1 extensions like signatures", chunks(chunk(90, extension: 90, 400) + "0\r\n\r\n" + hidden),
                [200, 200]
            ),
        ] as [(String, String, [Int])])
    func isAnsweredOrRefused(_ section: String, _ sent: String, _ codes: [Int]) throws {
        try serve(echo)
        let answers = try conversation(sent)
        expectEqual(statuses(answers), codes, "\(section): \(answers)")
        // Nothing is parsed after a refusal.
        if codes.last! >= 400 {
            expect(!answers.contains("hidden"))
            expect(answers.contains("Connection: close\r\n"))
        }
    }

    private static func chunk(_ size: Int, extension count: Int, _ times: Int) -> String {
        let (digits, bytes) = (String(size, radix: 16), String(repeating: "a", count: size))
        return String(repeating: "\(digits);\(String(repeating: "x", count: count - 1))\r\n\(bytes)\r\n", count: times)
    }

    /// Bytes are tested in groups: each place in a name, a value and a host, in and behind whole groups.
    @Test(
        .served,
        arguments: [
            ("NAME: v", Array("@[{(,;\u{1F} ".utf8) + [0x80, 0xC1, 0xFF], "`!~09_-.azAZ"),
            ("n: VALUE", [0, 0x1F, 0x7F], "\t ~!@\u{80}\u{E9}"),
            ("Host: VALUE", Array("/@[`{\"?# ".utf8) + [0x80], "09azAZ-._~!,"),
        ])
    func eachPlaceOfAFieldIsTested(_ pattern: String, _ bad: [UInt8], _ good: String) throws {
        let isName = pattern.hasPrefix("NAME")
        let parts = pattern.components(isName ? "NAME" : "VALUE")
        func request(_ length: Int, _ place: Int, _ bytes: some Collection<UInt8>) -> [UInt8] {
            var part = [UInt8](repeating: UInt8(ascii: "n"), count: length)
            part.replaceSubrange(place..<place + 1, with: bytes)
            let host = pattern.hasPrefix("Host") ? "" : "Host: x\r\n"
            return Array("GET / HTTP/1.1\r\n\(host)\(parts[0])".utf8) + part + Array("\(parts[1])\r\n\r\n".utf8)
        }
        let lengths = [1, 7, 8, 17]
        try serve { _ in .now(Response("")) }
        func answers(_ sent: [UInt8]) throws -> [Int] {
            let client = try connected()
            try hang(client.write(sent).then { client.shutdownWrite() }, timeout: patience)
            return statuses(try readToEnd(client))
        }
        for length in lengths {
            for place in 0..<length {
                for byte in bad where !(byte == 0x20 && !isName && (place == 0 || place == length - 1)) {
                    let codes = try answers(request(length, place, [byte]))
                    expectEqual(codes, [400], "\(byte) at \(place) of \(length)")
                }
                let sent = good.flatMap { request(length, place, String($0).utf8) }
                let codes = try answers(sent)
                expectEqual(codes, [Int](repeating: 200, count: good.count), "\(place) of \(length)")
            }
        }
    }

    @Test(.served) func headsAndFieldsHaveLimits() throws {
        var options = HTTPOptions()
        options.maxHead = 200
        options.maxFields = 3
        try serve(limits: options) { _ in .now(Response("")) }
        let long = String(repeating: "a", count: 200)
        try expect([414], "GET /\(long)")
        try expect([431], "GET / HTTP/1.1\r\nHost: x\r\nA: \(long)")
        let fields = String(repeating: "A: b\r\n", count: 3)
        try expect([431], "GET / HTTP/1.1\r\nHost: x\r\n\(fields)\r\n")
        try expect([200], "GET / HTTP/1.1\r\nHost: x\r\nA: b\r\nA: b\r\n\r\n")
    }

    /// Although no line end has arrived, and may never arrive.
    @Test(
        .inLoop,
        arguments: [
            "\0", " ", "\t", "{\"a\": 1}", "\u{16}\u{3}\u{1}\u{2}\u{0}", "GET\0", "GET / HTTP/1.1\u{1}", "GET /\rx",
            "GET / HTTP/1.1\r\nHost: x\0", "GET / HTTP/1.1\r\nA: b\rc", "GET / HTTP/1.1\r\n\u{7F}",
        ])
    func whatCannotBecomeAHeadIsRefusedAtOnce(_ bytes: String) throws {
        // In one part with the previous request, and byte by byte.
        for (before, codes) in [(ServerTests.get, [200, 400]), ("", [400])] {
            let client = try serveClient { _ in .now(Response("")) }
            let parts = before.isEmpty ? bytes.utf8.map { [$0] } : [Array((before + bytes).utf8)]
            for part in parts { try hang(client.write(part).then { after(.milliseconds(1)) }) }
            let answers = String(decoding: try hang(client.receiveAll(), timeout: .seconds(1)), as: UTF8.self)
            expect(statuses(answers) == codes && answers.contains("\r\nConnection: close\r\n"), "\(answers)")
        }
    }

    /// RFC 9112, section 3.2.2.
    @Test(
        .served,
        arguments: [
            ("GET /p HTTP/1.1\r\nHost: b:80\r\n", "b:80"), ("GET http://a/p HTTP/1.1\r\nHost: b\r\n", "a"),
            ("GET http://a:8080 HTTP/1.1\r\nHost: b\r\n", "a:8080"), ("GET HTTPS://A?q HTTP/1.1\r\nHost: b\r\n", "A"),
            ("GET http://[::1]:1/p?q=http://c/ HTTP/1.1\r\nA: b\r\nhost: b\r\n", "[::1]:1"),
            ("GET /p HTTP/1.0\r\n", "nil"), ("GET http://a/p HTTP/1.0\r\n", "a"),
            ("OPTIONS * HTTP/1.1\r\nHost: b\r\n", "b"),
        ])
    func theHostOfTheTargetWins(_ head: String, _ host: String) throws {
        try serve { request in
            let named = request.headers.all("host")
            expect(named == (request.host.map { [$0] } ?? []) && request.headers["a"] ?? "b" == "b")
            return .now(Response("\(request.host ?? "nil") \(request.target) \(request.path) \(request.query ?? "-")"))
        }
        let answer = try conversation(head + "\r\n")
        let target = head.split(separator: " ")[1]
        expect(answer.contains("\r\n\r\n\(host) \(target) "), "\(answer)")
    }

    /// A value chosen by a peer cannot add fields to a response: RFC 9110, section 5.5.
    @Test(.served) func neitherValuesNorNamesCanSplitAResponse() throws {
        let headers: Headers = ["X": "a\r\nSet-Cookie: b\0", "": "a", "X:\r\nY": "b"]
        try serve { request in
            if request.path == "/" { return .now(Response("", headers: headers)) }
            return .now(.upgrade(to: "x\r\nZ: 1", headers: headers) { _ in .value })
        }
        let answer = try conversation(ServerTests.get + Self.hidden)
        expectEqual(answer.components("\r\nX: a  Set-Cookie: b \r\n").count, 3, "\(answer)")
        expect(answer.components("\r\nX---Y: b\r\n").count == 3 && answer.contains("\r\nUpgrade: x  Z: 1\r\n"))
    }
}
