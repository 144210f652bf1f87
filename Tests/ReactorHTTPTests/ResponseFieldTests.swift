import Promises
import Reactor
import ReactorHTTP
import ReactorHTTPJSON
import Testing

/// A field that the library writes, and that a program sets too, is there once: RFC 9110, section 5.3.
@Suite struct ResponseFieldTests {
    enum Kind: CaseIterable { case text, bytes, empty, set, stream, json, upgrade }

    /// A response of each kind with these fields.
    private static func response(_ kind: Kind, _ headers: Headers) throws -> Response {
        switch kind {
        case .text: return Response("<p>", headers: headers)
        case .bytes: return Response([1, 2, 3], headers: headers)
        case .empty: return Response(.ok, headers: headers)
        case .set:
            var response = Response("abc")
            for (name, value) in headers { response.headers[name] = value }
            return response
        case .stream: return .stream(headers: headers, length: 3) { $0.write("abc") }
        case .json: return try .json(123, headers: headers)
        case .upgrade: return .upgrade(to: "x", headers: headers) { _ in .value }
        }
    }

    private func fields(_ name: String, of head: some StringProtocol) -> [String] {
        head.split(separator: "\r\n").filter { $0.lowercased().hasPrefix("\(name): ") }
            .map { String($0.dropFirst(name.count + 2)) }
    }

    private func head(
        _ kind: Kind, _ headers: Headers, _ request: String = ServerTests.get
    ) throws -> (head: String, rest: String) {
        var parts: [Substring] = []
        try withServer({ _ in .now(try Self.response(kind, headers)) }) { address, _ in
            parts = try conversation(address, request).components("\r\n\r\n")
        }
        try #require(parts.count >= 2)
        return (String(parts[0]), parts[1...].joined(separator: "\r\n\r\n"))
    }

    @Test(arguments: Kind.allCases, ["Content-Type", "content-type", "Date", "Server", "ETag", "Allow"])
    func theFieldOfTheProgramIsSent(_ kind: Kind, _ name: String) throws {
        let (head, rest) = try head(kind, [name: "of the program"])
        #expect(fields(name.lowercased(), of: head) == ["of the program"])
        #expect(fields("date", of: head).count == 1)
        #expect(
            rest
                == (kind == .text
                    ? "<p>"
                    : kind == .json
                        ? "123" : kind == .bytes ? "\u{1}\u{2}\u{3}" : kind == .empty || kind == .upgrade ? "" : "abc"))
    }

    /// What says where the message ends is the library's, or a client would see another end.
    @Test(arguments: Kind.allCases, ["Content-Length", "Transfer-Encoding"])
    func theFramingIsThatOfTheLibrary(_ kind: Kind, _ name: String) throws {
        let (head, _) = try head(kind, [name: name == "Content-Length" ? "99" : "chunked"])
        #expect(fields("transfer-encoding", of: head) == [])
        let length = kind == .upgrade ? [] : [kind == .empty ? "0" : "3"]
        #expect(fields("content-length", of: head) == length)
    }

    @Test(arguments: [
        ("keep-alive", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", nil),
        ("close", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "close"),
        ("upgrade", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "upgrade"),
        ("Upgrade, close", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "Upgrade, close"),
        ("upgrade", "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "upgrade, close"),
        ("x-a, keep-alive", "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "x-a, keep-alive"),
        ("close", "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "close"),
    ])
    func optionsOfTheProgramStandBesideThoseOfTheLibrary(_ set: String, _ request: String, _ sent: String?) throws {
        for kind in [Kind.text, .stream] {
            let (head, _) = try head(kind, ["Connection": set], request)
            #expect(fields("connection", of: head) == (sent.map { [$0] } ?? []))
        }
    }

    @Test func anUpgradeNamesItsProtocolOnce() throws {
        let (head, _) = try head(.upgrade, ["Upgrade": "y", "Connection": "upgrade, x-a"])
        #expect(fields("upgrade", of: head) == ["x"])
        #expect(fields("connection", of: head) == ["Upgrade, x-a"])
    }

    /// RFC 9110, section 7.8: who sends `Upgrade` names it in `Connection`.
    @Test func aRefusalNamesTheProtocol() throws {
        var (head, _) = try head(.text, ["Upgrade": "h2c"])
        #expect(fields("upgrade", of: head) == ["h2c"] && fields("connection", of: head) == ["upgrade"])
        // RFC 9110, section 15.5.22.
        (head, _) = try self.head(.upgrade, [:], "GET / HTTP/1.0\r\n\r\n")
        #expect(statuses(head) == [426] && fields("upgrade", of: head) == ["x"])
        #expect(fields("connection", of: head) == ["upgrade, close"])
        let handler = { (request: Request) in Answer.now(.webSocket(request) { _ in .value }) }
        try withServer(handler) { address, _ in
            let parts = WebSocketTests.handshake.components("Version: 13")
            let answer = try conversation(address, parts.joined(separator: "Version: 8") + "\r\n")
            #expect(fields("upgrade", of: answer) == ["websocket"])
            #expect(fields("connection", of: answer) == ["upgrade"])
        }
    }

    /// A response to HEAD says how long that to GET would be, which a program may know without making it.
    @Test(arguments: [("99", "99"), ("-1", "0"), ("1, 2", "0")])
    func aResponseToHeadHasTheLengthOfTheProgram(_ set: String, _ sent: String) throws {
        let request = "HEAD / HTTP/1.1\r\nHost: x\r\n\r\n"
        let (head, rest) = try head(.empty, ["Content-Length": set], request + ServerTests.get)
        #expect(fields("content-length", of: head) == [sent])
        #expect(statuses(rest) == [200])
    }

    @Test func theTypeIsThatWhichWasSetLast() {
        var response = Response("", headers: ["Content-Type": "a/b"])
        #expect(response.contentType == "a/b")
        response.contentType = "c/d"
        #expect(response.contentType == "c/d" && response.headers["content-type"] == nil)
        response.headers["content-type"] = "e/f"
        #expect(response.contentType == "e/f")
        response.contentType = nil
        #expect(response.contentType == nil)
    }
}
