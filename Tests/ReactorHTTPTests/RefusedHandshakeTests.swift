/// The response of a server that opens no WebSocket, or of a proxy that opens no tunnel, reaches the program.
struct RefusedHandshakeTests {
    enum Peer: CaseIterable { case server, proxy }

    private static let large = [UInt8](repeating: 7, count: 100_000)

    /// What the peer sends behind its status and its other fields, the body that the error has, and the time for it.
    private static let bodies: [(String, String, Duration)] = [
        ("Content-Length: 4\r\n\r\nlate", "late", .zero), ("Content-Length: 0\r\n\r\n", "", .zero),
        ("Transfer-Encoding: chunked\r\n\r\n2\r\nla\r\n2\r\nte\r\n0\r\n\r\n", "late", .zero),
        // The peer says no more, and stays.
        ("Content-Length: 9\r\n\r\nla", "la", .seconds(1)), ("Content-Length: 9\r\n\r\n", "", .seconds(1)),
        ("\r\nuntil the end", "until the end", .seconds(1)),
        // It is wrong, or too long.
        ("Transfer-Encoding: chunked\r\n\r\n2\r\nla\r\nx\r\n", "", .zero),
        ("Content-Length: 100000\r\n\r\n" + String(decoding: large, as: UTF8.self), "65536", .zero),
        ("Content-Length: 100000000000\r\n\r\n" + String(decoding: large, as: UTF8.self), "65536", .zero),
    ]

    @Test(.inLoop, arguments: Peer.allCases, bodies.indices)
    func theResponseIsInTheError(_ peer: Peer, _ index: Int) throws {
        let (rest, expected, time) = Self.bodies[index]
        try servePeer { _, connection in
            connection.write("HTTP/1.1 407 x\r\nRetry-After: 5\r\nWWW-Authenticate: Bearer\r\n" + rest)
                .then { after(.seconds(10_000)) }.asVoid()
        }
        var options = HTTPClient.Options()
        options.startTLS = { connection, _ in .value(connection) }
        options.proxies = Proxies()
        if peer == .proxy { options.proxies.https = "http://\(address)" }
        useClient(options)
        let began = EventLoop.current.now
        let outcome =
            peer == .server
            ? client.webSocket("ws://\(address)/").asVoid() : client.fetch("https://a.example/").asVoid()
        let error = #expect(throws: FetchError.self) { try hang(outcome, timeout: .seconds(100)) }
        switch error {
        case .refusedWebSocket(let status, let headers, let body)? where peer == .server,
            .refusedByProxy(let status, let headers, let body)? where peer == .proxy:
            expect(status.code == 407 && headers["retry-after"] == "5" && headers["www-authenticate"] == "Bearer")
            let text = body.count > 1000 ? "\(body.count)" : String(decoding: body, as: UTF8.self)
            expectEqual(text, expected)
        default: Issue.record("\(String(describing: error))")
        }
        expectEqual(began.duration(to: EventLoop.current.now), time)
        // The connection is not kept.
        try EventLoop.current.run(until: { listener.activeConnections == 0 })
    }

    /// Its fields describe no body, whatever they say.
    @Test(.served, arguments: ["Content-Length: 5\r\nContent-Length: 6\r\n", "Transfer-Encoding: x\r\n", ""])
    func aTunnelIsOpenWhateverItsFieldsSay(_ fields: String) throws {
        var requests = 0
        try servePeer { _, connection in
            requests += 1
            let answer = requests == 1 ? fields : "Content-Length: 2\r\n"
            return connection.write("HTTP/1.1 200 x\r\n\(answer)\r\n\(requests == 1 ? "" : "ok")")
        }
        var options = HTTPClient.Options()
        options.startTLS = { connection, _ in .value(connection) }
        options.proxies = Proxies(https: "http://\(address)")
        useClient(options)
        let text = client.fetch("https://a.example/").then { $0.body.text() }
        expectEqual(try hang(text, timeout: patience), "ok")
    }
}
