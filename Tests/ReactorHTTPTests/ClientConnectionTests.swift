@testable import ReactorHTTP

import SimulatedNetwork

/// When a connection serves the next request, and what a request tells about the client.
struct ClientConnectionTests {
    private static func answer(_ request: Request) -> Answer {
        switch request.path {
        case "/redirect": .now(Response("elsewhere\n", status: Status(302), headers: ["Location": "/bytes"]))
        case "/empty": .now(Response(.noContent))
        case "/zero": .now(Response(""))
        case "/chunks": .now(.stream { output in output.write("a").then { output.write("b") } })
        case "/later":
            .now(.stream { output in output.write("a").then { after(.milliseconds(2)) }.then { output.write("b") } })
        default: .now(Response([UInt8](repeating: 1, count: 100_000)))
        }
    }

    /// The connection is back in the pool before the program sees the end, whatever that end is.
    @Test(.served, arguments: ["/redirect", "/empty", "/zero", "/chunks", "/later", "/bytes"])
    func theNextRequestFindsTheConnectionFree(_ path: String) throws {
        var ports: Set<UInt16> = []
        try serve { request in
            ports.insert(request.connection!.peerAddress!.port)
            return Self.answer(request)
        }
        let ways: [(Fetched) -> Promise<Void>] = [
            { $0.body.forEach { _ in }.asVoid() }, { $0.body.forEach { _ in Promise.value } },
            { $0.body.bytes().asVoid() }, { $0.body.text().asVoid() },
            { response in repeatWhile { response.body.read().map { $0 != nil } } },
        ]
        for (index, way) in ways.enumerated() {
            func get(_ method: ReactorHTTP.Method = .get) -> Promise<Fetched> {
                client.fetch("http://\(address)\(path)", method)
            }
            // Without a turn of the loop between them.
            let all = get().then(way).then { get() }.then(way).then { get(.head) }.then { _ in get() }.then(way)
            try hang(all, timeout: patience)
            expectEqual(ports.count, 1, "\(path), way \(index)")
        }
    }

    @Test(.served) func aResponseThatHasBeenReadKeepsNoRequest() throws {
        try serve(Self.answer)
        var isGone = false
        func fetch() throws -> Fetched {
            let words = LastWords { isGone = true }
            let body = RequestBody.stream { output in
                words.use()
                return output.write("a")
            }
            return try hang(client.fetch("http://\(address)/bytes", .post, body: body), timeout: patience)
        }
        let response = try fetch()
        try hang(response.body.bytes(), timeout: patience)
        hang(after(.milliseconds(1)))
        expect(isGone)
        withExtendedLifetime(response) {}
    }

    /// Even if the server continues.
    @Test(.inRealTime) func theEndOfTheConnectionCanBeAskedFor() throws {
        var (ports, heads) = (Set<UInt16>(), [String]())
        try servePeer { head, connection in
            heads.append(head)
            ports.insert(connection.peerAddress!.port)
            return connection.write("HTTP/1.1 200 x\r\nContent-Length: 2\r\n\r\nok")
        }
        for headers: Headers in [
            ["Connection": "close"], ["connection": "x, Close"], ["Connection": "keep-alive, te"], [:],
        ] {
            let fetching = client.fetch("http://\(address)/", headers: headers)
            expectEqual(try hang(fetching.then { $0.body.text() }, timeout: patience), "ok")
        }
        expectEqual(heads.map { $0.contains("\r\nConnection: close") }, [true, true, false, false])
        expectEqual(ports.count, 3)
    }

    /// A request that leaves as the server ends the connection would meet a reset. The time for its way is left out.
    @Test(
        .inLoop,
        arguments: [
            ("timeout=1", 400, 1), ("timeout=1", 600, 2), ("timeout=1", 1100, 2), ("Timeout=4, max=9", 2900, 1),
            ("max=9,\ttimeout=4", 3100, 2), ("timeout=0", 0, 2), ("timeout=99999999999999999999", 29_000, 1),
            ("timeout=-1", 29_000, 1), ("timeout", 29_000, 1), ("max=1", 29_000, 1), ("timeout=a", 29_000, 1),
        ])
    func aConnectionIsKeptForAsLongAsTheServerSays(_ field: String, _ milliseconds: Int, _ count: Int) throws {
        var ports: Set<UInt16> = []
        try servePeer { _, connection in
            ports.insert(connection.peerAddress!.port)
            return connection.write("HTTP/1.1 200 x\r\nKeep-Alive: \(field)\r\nContent-Length: 2\r\n\r\nok")
        }
        func post() throws {
            let text = client.fetch("http://\(address)/", .post).then { $0.body.text() }
            expectEqual(try hang(text, timeout: patience), "ok")
        }
        try post()
        hang(after(.milliseconds(milliseconds)))
        try post()
        expectEqual(ports.count, count)
    }

    /// The last response counts, and each idle connection has its own limit.
    @Test(.inLoop) func theLimitOfAConnectionIsThatOfItsLastResponse() throws {
        var ports: Set<UInt16> = []
        try servePeer { head, connection in
            ports.insert(connection.peerAddress!.port)
            let field = head.hasPrefix("POST /limited") ? "Keep-Alive: timeout=2\r\n" : ""
            return connection.write("HTTP/1.1 200 x\r\n\(field)Content-Length: 0\r\n\r\n")
        }
        func post(_ path: String = "/") -> Promise<Void> { client.fetch("http://\(address)\(path)", .post).asVoid() }
        try hang(post("/limited").then { post() }, timeout: patience)
        hang(after(.seconds(20)))
        try hang(post(), timeout: patience)
        expectEqual(ports.count, 1)
        // Two at once, of which one is limited.
        try hang(when(fulfilled: post("/limited"), post()).asVoid(), timeout: patience)
        hang(after(.seconds(2)))
        try hang(when(fulfilled: post(), post()).asVoid(), timeout: patience)
        expectEqual(ports.count, 3)
    }

    /// RFC 9112, section 9.2. A program's own TLS, without a filter, gives the server time to be early.
    @Test(.inLoop) func aResponseBeforeItsRequestIsNone() throws {
        try servePeer { connection in
            connection.write("HTTP/1.1 200 x\r\nContent-Length: 4\r\n\r\nevil").then {
                connection.forEachChunk { _ in .value }
            }
        }
        var options = HTTPClient.Options()
        options.startTLS = { connection, _ in after(.seconds(1)).map { connection } }
        let fetching = HTTPClient(options).fetch("https://\(address)/").then { $0.body.text() }
        #expect(throws: HTTPError.unusable("bytes before the request")) {
            try hang(fetching, timeout: .seconds(3600))
        }
    }

    /// Without memory in the kernel the server does not know of the request, and would never answer. Of other errors,
    /// what it has said before its end is read, for as long as a response may take.
    @Test(arguments: [ENOBUFS, ENOMEM, EPIPE], 0..<3)
    func aRequestThatCannotBeSentFailsOrWaitsForTheResponse(_ code: CInt, _ form: Int) throws {
        let body: RequestBody? = [nil, .text("a"), .stream { $0.write("a") }][form]
        try withSimulatedNetwork { network in
            let server = network.host("server"), host = network.host("client")
            // As a server that waits for the rest.
            try server.run { try Listener.bind("0.0.0.0:80").serve { $0.forEachChunk { _ in } } }
            for call in [SystemCall.send, .sendVector] { host.faults.fail(call, with: code) }
            let fetching = host.run { HTTPClient().fetch("http://server/", .put, body: body) }
            let error = #expect(throws: (any Error).self) { try hang(fetching, timeout: .seconds(3600)) }
            expect(
                code == EPIPE ? error as? FetchError == .timedOut(.firstByte) : (error as? SystemError)?.code == code)
            expectEqual(network.now, LoopInstant(nanoseconds: code == EPIPE ? 30_000_000_000 : 0))
        }
    }

    // MARK: What a request says

    /// RFC 9110, section 10.1.5.
    @Test(.inRealTime) func aRequestNamesTheClientAndTheHost() throws {
        var heads: [String] = []
        try servePeer { head, connection in
            heads.append(head.replacing("\(address)", with: "server"))
            return connection.write("HTTP/1.1 204 x\r\n\r\n")
        }
        func send(_ userAgent: String?, _ headers: Headers = [:]) throws {
            var options = HTTPClient.Options()
            options.userAgent = userAgent
            _ = try hang(HTTPClient(options).fetch("http://\(address)/", headers: headers), timeout: patience)
        }
        try send("swift-reactor")
        try send("swift-reactor", ["user-agent": "mine/1"])
        try send("a\r\nb")
        try send(nil, ["Host": "virtual.example"])
        try send(nil, ["A": "b", "host": "[::1]:80"])
        let fields = [
            "server\r\nUser-Agent: swift-reactor", "server\r\nuser-agent: mine/1", "server\r\nUser-Agent: a  b",
            "virtual.example", "[::1]:80\r\nA: b",
        ]
        expectEqual(heads, fields.map { "GET / HTTP/1.1\r\nHost: \($0)" })
    }

    @Test(.inRealTime) func requestsThatCannotBeMadeSoAreRefused() throws {
        for headers: Headers in [
            ["Host": ""], ["Host": "a b"], ["Host": "a/b"], ["Host": "a", "host": "a"], ["Host": "a:x"],
        ] {
            let error = #expect(throws: FetchError.self) {
                _ = try hang(fetch("http://127.0.0.1:1/", headers: headers))
            }
            if case .badRequest? = error { continue }
            Issue.record("\(String(describing: error)) for \(headers)")
        }
        // RFC 9110, section 9.3.8.
        #expect(throws: FetchError.badRequest("TRACE with a body")) {
            _ = try hang(fetch("http://127.0.0.1:1/", "TRACE", body: .text("x")))
        }
    }

    // MARK: Long bodies

    /// A body that is read in parts takes no memory.
    @Test(.served, arguments: ["/bytes", "/chunked"])
    func theLimitOfABodyIsForThoseThatAreReadAsAWhole(_ path: String) throws {
        var options = HTTPClient.Options()
        options.maxBody = 99_999
        let whole = [UInt8](repeating: 1, count: 100_000)
        try serve(client: options) { request in
            .now(request.path == "/bytes" ? Response(whole) : .stream { output in output.write(whole) })
        }
        func fetch() -> Promise<Fetched> { client.fetch("http://\(address)\(path)") }
        var count = 0
        try hang(fetch().then { $0.body.forEach { count += $0.count } }, timeout: patience)
        expectEqual(count, 100_000)
        for reading in [fetch().then { $0.body.bytes() }.asVoid(), fetch().then { $0.body.text() }.asVoid()] {
            let error = #expect(throws: HTTPError.self) { try hang(reading, timeout: patience) }
            expectEqual(error?.status, Status(502))
            expect(error?.reason.contains("more than 99999 bytes") == true, "\(String(describing: error))")
        }
        // The program's setting applies to all reads.
        let response = try hang(fetch(), timeout: patience)
        expectEqual(response.body.limit, 99_999)
        response.body.limit = 100_000
        expectEqual(try hang(response.body.bytes(), timeout: patience), whole)
        let other = try hang(fetch(), timeout: patience)
        other.body.limit = 99_999
        #expect(throws: HTTPError.self) { try hang(other.body.forEach { _ in }, timeout: patience) }
    }

    @Test(.inRealTime) func aServerOnAUnixSocketIsReachedByALookup() throws {
        let folder = Folder()
        let listener = try Listener.bind("unix:\(folder["http"])")
        listener.serveHTTP { request in Response("\(request.headers["host"] ?? "-") \(request.target)") }
        let text = HTTPClient(lookup: Table(listener.localAddress)).fetch("http://docker/version?x").then {
            $0.body.text()
        }
        expectEqual(try hang(text, timeout: patience), "docker /version?x")
        listener.close()
    }
}
