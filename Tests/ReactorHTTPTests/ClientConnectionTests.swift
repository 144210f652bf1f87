import SimulatedNetwork

/// When a connection serves the next request, and what a request tells about the client.
struct ClientConnectionTests {
    /// Runs `body` with a server that counts its connections.
    private func withCounting(
        _ handler: @escaping (Request) throws -> Answer, _ body: (HTTPClient, String) throws -> Void
    ) throws -> Int {
        var ports: Set<UInt16> = []
        try withServer({ request in
            if let peer = request.connection?.peerAddress { ports.insert(peer.port) }
            return try handler(request)
        }) { address, _ in
            let client = HTTPClient()
            try body(client, "http://\(address)")
            client.close()
        }
        return ports.count
    }

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
    @Test(arguments: ["/redirect", "/empty", "/zero", "/chunks", "/later", "/bytes"])
    func theNextRequestFindsTheConnectionFree(_ path: String) throws {
        let ways: [(Fetched) -> Promise<Void>] = [
            { $0.body.forEach { _ in }.asVoid() }, { $0.body.forEach { _ in Promise.value } },
            { $0.body.bytes().asVoid() }, { $0.body.text().asVoid() },
            { response in repeatWhile { response.body.read().map { $0 != nil } } },
        ]
        for (index, way) in ways.enumerated() {
            let connections = try withCounting(Self.answer) { client, base in
                // Without a turn of the loop between them.
                let all = client.fetch(base + path).then(way).then { client.fetch(base + path) }.then(way)
                    .then { client.fetch(base + path, .head) }.then { _ in client.fetch(base + path) }.then(way)
                try hang(all, timeout: patience)
            }
            expectEqual(connections, 1, "\(path), way \(index)")
        }
    }

    @Test func aResponseThatHasBeenReadKeepsNoRequest() throws {
        try withClient(Self.answer) { client, address in
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
    }

    @Test(.served) func whoIsInLineGetsItAtOnce() throws {
        var options = HTTPClient.Options()
        options.connections = PoolLimits(perKey: 1)
        try serve(client: options, Self.answer)
        let fetches = (0..<20).map { index in
            client.fetch("http://\(address)\(["/empty", "/chunks", "/bytes"][index % 3])").then { $0.body.bytes() }
        }
        let lengths = try hang(when(fulfilled: fetches), timeout: patience).map(\.count)
        expectEqual(lengths.reduce(0, +), 7 * 2 + 6 * 100_000)
    }

    /// Even if the server continues.
    @Test(.inRealTime) func theEndOfTheConnectionCanBeAskedFor() throws {
        let listener = try Listener.bind("127.0.0.1:0")
        var (accepted, heads) = (0, [String]())
        listener.serve { connection in
            accepted += 1
            return connection.forEachFrame(DelimiterDecoder("\r\n\r\n")) { head, _ in
                heads.append(String(decoding: head, as: UTF8.self))
                return connection.write("HTTP/1.1 200 x\r\nContent-Length: 2\r\n\r\nok")
            }
        }
        let client = HTTPClient()
        for headers: Headers in [
            ["Connection": "close"], ["connection": "x, Close"], ["Connection": "keep-alive, te"], [:],
        ] {
            let fetching = client.fetch("http://\(listener.localAddress)/", headers: headers)
            expectEqual(try hang(fetching.then { $0.body.text() }, timeout: patience), "ok")
        }
        expectEqual(heads.map { $0.contains("\r\nConnection: close") }, [true, true, false, false])
        expectEqual(accepted, 3)
        client.close()
        listener.close()
    }

    /// RFC 9112, section 9.2. A program's own TLS, without a filter, gives the server time to be early.
    @Test(.inLoop) func aResponseBeforeItsRequestIsNone() throws {
        let listener = try Listener.bind("127.0.0.1:0")
        listener.serve { connection in
            connection.write("HTTP/1.1 200 x\r\nContent-Length: 4\r\n\r\nevil").then {
                connection.forEachChunk { _ in .value }
            }
        }
        var options = HTTPClient.Options()
        options.startTLS = { connection, _ in after(.seconds(1)).map { connection } }
        let client = HTTPClient(options)
        let fetching = client.fetch("https://\(listener.localAddress)/").then { $0.body.text() }
        #expect(throws: HTTPError(Status(502), "bytes before the request")) {
            try hang(fetching, timeout: .seconds(3600))
        }
        client.close()
        listener.close()
    }

    /// The server does not know of the request, and would never answer.
    @Test(arguments: [ENOBUFS, ENOMEM], 0..<3)
    func aRequestForWhichTheKernelHasNoMemoryFails(_ code: CInt, _ form: Int) throws {
        let body: RequestBody? = [nil, .text("a"), .stream { $0.write("a") }][form]
        try withSimulatedNetwork { network in
            let server = network.host("server"), host = network.host("client")
            // As a server that waits for the rest.
            try server.run { try Listener.bind("0.0.0.0:80").serve { $0.forEachChunk { _ in } } }
            for call in [SystemCall.send, .sendVector] { host.faults.fail(call, with: code) }
            let fetching = host.run { HTTPClient().fetch("http://server/", .put, body: body) }
            let error = #expect(throws: SystemError.self) { try hang(fetching, timeout: .seconds(3600)) }
            expectEqual(error?.code, code)
            expectEqual(network.now, LoopInstant(nanoseconds: 0))
        }
    }

    /// What the server has said before its end is read, for as long as a response may take.
    @Test func aRequestThatCannotBeSentWaitsForTheResponseAndNoLonger() throws {
        try withSimulatedNetwork { network in
            let server = network.host("server"), host = network.host("client")
            try server.run { try Listener.bind("0.0.0.0:80").serve { $0.forEachChunk { _ in } } }
            host.faults.fail(.send, with: EPIPE)
            let fetching = host.run { HTTPClient().fetch("http://server/") }
            #expect(throws: FetchError.timedOut(.firstByte)) { try hang(fetching, timeout: .seconds(3600)) }
            expectEqual(network.now, LoopInstant(nanoseconds: 30_000_000_000))
        }
    }

    // MARK: What a request says

    private func heads(_ options: HTTPClient.Options, _ headers: [Headers]) throws -> [String] {
        try EventLoop.withLoop { _ in
            let listener = try Listener.bind("127.0.0.1:0")
            var heads: [String] = []
            listener.serve { connection in
                connection.forEachFrame(DelimiterDecoder("\r\n\r\n")) { head, _ in
                    heads.append(
                        String(decoding: head, as: UTF8.self).replacing("\(listener.localAddress)", with: "server"))
                    return connection.write("HTTP/1.1 204 x\r\n\r\n")
                }
            }
            let client = HTTPClient(options)
            for headers in headers {
                _ = try hang(client.fetch("http://\(listener.localAddress)/", headers: headers), timeout: patience)
            }
            client.close()
            listener.close()
            return heads
        }
    }

    /// RFC 9110, section 10.1.5.
    @Test func aRequestNamesTheClientAndTheHost() throws {
        let begin = "GET / HTTP/1.1\r\nHost: server"
        expectEqual(
            try heads(HTTPClient.Options(), [[:], ["user-agent": "mine/1"]]),
            [begin + "\r\nUser-Agent: swift-reactor", begin + "\r\nuser-agent: mine/1"])
        var options = HTTPClient.Options()
        options.userAgent = "a\r\nb"
        expectEqual(try heads(options, [[:]]), [begin + "\r\nUser-Agent: a  b"])
        options.userAgent = nil
        let hosts: [Headers] = [[:], ["Host": "virtual.example"], ["A": "b", "host": "[::1]:80"]]
        let replaced = ["GET / HTTP/1.1\r\nHost: virtual.example", "GET / HTTP/1.1\r\nHost: [::1]:80\r\nA: b"]
        expectEqual(try heads(options, hosts), [begin] + replaced)
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
    @Test func theLimitOfABodyIsForThoseThatAreReadAsAWhole() throws {
        var options = HTTPClient.Options()
        options.maxBody = 99_999
        for path in ["/bytes", "/chunked"] {
            let handler = { (request: Request) -> Answer in
                if request.path == "/bytes" { return Self.answer(request) }
                return .now(.stream { output in output.write([UInt8](repeating: 1, count: 100_000)) })
            }
            try withClient(options: options, handler) { client, address in
                func fetch() -> Promise<Fetched> { client.fetch("http://\(address)\(path)") }
                var count = 0
                try hang(fetch().then { $0.body.forEach { count += $0.count } }, timeout: patience)
                expectEqual(count, 100_000)
                for whole in [fetch().then { $0.body.bytes() }.asVoid(), fetch().then { $0.body.text() }.asVoid()] {
                    let error = #expect(throws: HTTPError.self) { try hang(whole, timeout: patience) }
                    expectEqual(error?.status, Status(502))
                    expect(error?.reason.contains("more than 99999 bytes") == true, "\(String(describing: error))")
                }
                // The program's setting applies to all reads.
                for (limit, isEnough) in [(100_000, true), (99_999, false)] {
                    let response = try hang(fetch(), timeout: patience)
                    expectEqual(response.body.limit, 99_999)
                    response.body.limit = limit
                    expectEqual(response.body.limit, limit)
                    let reading = isEnough ? response.body.bytes().asVoid() : response.body.forEach { _ in }
                    if isEnough {
                        try hang(reading, timeout: patience)
                    } else {
                        #expect(throws: HTTPError.self) { try hang(reading, timeout: patience) }
                    }
                }
            }
        }
    }

    // MARK: Unix sockets

    @Test(.inRealTime) func aServerOnAUnixSocketIsReachedByALookup() throws {
        let folder = Folder()
        let address = try SocketAddress("unix:\(folder["http"])")
        let listener = try Listener.bind(address)
        let served = listener.serveHTTP { request in Response("\(request.headers["host"] ?? "-") \(request.target)")
        }
        let client = HTTPClient(lookup: Table(address))
        for _ in 0..<2 {
            let text = client.fetch("http://docker/version?x").then { $0.body.text() }
            expectEqual(try hang(text, timeout: patience), "docker /version?x")
        }
        client.close()
        listener.close()
        _ = try hang(served, timeout: patience)
    }
}
