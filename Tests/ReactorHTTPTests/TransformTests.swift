/// Programs that change, store and test responses, and need their bodies for that.
struct TransformTests {
    /// Stands for a compressor: it collects pairs of bytes, so it keeps a byte between two parts, and has one left at
    /// the end.
    private final class Pairs {
        private var kept: [UInt8] = []

        func add(_ bytes: [UInt8]) -> [UInt8] {
            let all = kept + bytes
            kept = all.count % 2 == 0 ? [] : [all[all.count - 1]]
            return Array(all.dropLast(kept.count).map { $0 ^ 0x20 })
        }

        func end() -> [UInt8] { kept.map { $0 ^ 0x20 } + Array("!".utf8) }
    }

    private static let options: HTTPOptions = {
        var options = HTTPOptions()
        options.transform = { request, response in
            response.headers["X-Seen"] = request.path
            guard request.headers.has("accept-encoding", listing: "pairs"), !response.headers.has("content-encoding")
            else {
                return
            }
            switch response.body {
            case .bytes(let bytes)?:
                let pairs = Pairs()
                response.body = .bytes(pairs.add(bytes) + pairs.end())
            case .stream(_, let body)?:
                response.body = .stream(length: nil) { output in
                    let pairs = Pairs()
                    return try body(BodyOutput { output.write(pairs.add($0)) }).then { output.write(pairs.end()) }
                }
            case nil: return
            }
            response.headers["Content-Encoding"] = "pairs"
        }
        return options
    }()

    private static func respond(_ request: Request) -> Answer {
        switch request.path {
        case "/text": .now(Response("abc"))
        case "/bytes": .later(after(.milliseconds(1)).map { Response(Array("abc".utf8)) })
        case "/stream": .now(.stream(length: 3) { output in output.write("a").then { output.write("bc") } })
        case "/short": .now(.stream(length: 3) { output in output.write("a") })
        case "/error": .later(Promise(error: HTTPError(Status(409))))
        case "/none": .now(Response(.noContent))
        default: .now(.upgrade(to: "x") { $0.write("abc") })
        }
    }

    @Test(
        .served,
        arguments: [
            ("/text", 200, "\r\nContent-Length: 4\r\n\r\nABC!"), ("/bytes", 200, "\r\nContent-Length: 4\r\n\r\nABC!"),
            ("/stream", 200, "\r\n\r\n2\r\nAB\r\n2\r\nC!\r\n0\r\n\r\n"),
            ("/error", 409, "\r\nContent-Length: 1\r\n\r\n!"),
            ("/none", 204, "\r\n\r\n"), ("/up", 101, "\r\n\r\nabc"),
        ])
    func aCompressorChangesEachResponse(_ path: String, _ status: Int, _ end: String) throws {
        try serve(limits: Self.options, Self.respond)
        let fields = "Host: x\r\nConnection: close\r\n"
        let plain = try conversation("GET \(path) HTTP/1.1\r\n\(fields)\r\n")
        expect(plain.contains("\r\nX-Seen: \(path)\r\n") && statuses(plain) == [status])
        let coded = try conversation("GET \(path) HTTP/1.1\r\n\(fields)Accept-Encoding: br, pairs;q=0.5\r\n\r\n")
        expect(statuses(coded) == [status] && coded.hasSuffix(end), "\(coded)")
        expect(coded.contains("\r\nContent-Encoding: pairs\r\n") == (path != "/up"))
        let refused = try conversation("GET \(path) HTTP/1.1\r\n\(fields)Accept-Encoding: pairs;q=0\r\n\r\n")
        expect(!refused.contains("pairs"))
    }

    /// The answer if no handler answers, or if a transform breaks the response.
    @Test(.served) func aResponseThatIsBrokenByATransformIsAnswered500() throws {
        var options = HTTPOptions()
        options.transform = { _, response in response.status = Status(100) }
        try serve(limits: options) { _ in .now(Response("")) }
        try expect([500, 400], ServerTests.get + "nonsense\r\n")
        try endServer()
        expectEqual(errors.count, 1)
    }

    @Test(.inRealTime) func aTestReadsTheBodyOfAResponse() throws {
        for response in [Response("abc"), Response(Array("abc".utf8)), .stream(length: 3) { $0.write("abc") }] {
            let bytes = try hang(#require(response.body).bytes())
            expectEqual(bytes, Array("abc".utf8))
        }
        let streams: [Response] = [.stream(length: 3) { $0.write("ab") }, .stream(length: 3) { $0.write("abcd") }]
        for response in streams {
            #expect(throws: (any Error).self) { _ = try hang(#require(response.body).bytes()) }
        }
        var upgrade = Response.upgrade(to: "x") { _ in .value }
        expect(upgrade.body == nil)
        upgrade.body = .bytes([1])
        expectEqual(upgrade.status.code, 101)
        var typed = Response("a", headers: ["Content-Type": "a/b"])
        typed.contentType = "c/d"
        expectEqual(typed.contentType, "c/d")
    }

    /// RFC 9110, sections 5.6.1 and 12.4.2.
    @Test(arguments: [
        ("gzip", true), ("br, GZIP ;q=0.5", true), ("gzip;q=1.0, br", true), ("gzip;q=0", false),
        ("gzip; Q=0.000", false),
        ("gzip;q=0.001", true), ("gzip;level=0", true), ("gzip;level=1;q=0", false), ("x-gzip", false),
        ("gzipx", false),
        ("", false), (";", false), ("gzip;", true), ("gzip;q=", true), ("*", false), ("br;x=gzip", false),
    ])
    func aListIsSearchedByNames(_ value: String, _ isListed: Bool) {
        let headers: Headers = ["Accept-Encoding": "identity", "accept-encoding": value]
        expectEqual(headers.has("Accept-Encoding", listing: "gzip"), isListed)
    }
}
