/// `ServeOptions.memoryLimit` and `PoolLimits.memoryLimit` for memory that HTTP peers cause.
struct MemoryLimitTests {
    /// The bytes of a client that never finishes.
    enum Form: CaseIterable {
        case body, chunks, trailers, text, frame, fragments, textFragments, unreceived, head, answeredLate

        /// 160 kB, or a head of 16 kB.
        var bytes: [UInt8] {
            let part = [UInt8](repeating: UInt8(ascii: "x"), count: 16_000)
            let parts = 10
            switch self {
            case .body, .text:
                let body = Array([[UInt8]](repeating: part, count: parts).joined())
                return post("Content-Length: \(body.count + 1)") + body
            case .chunks:
                let chunk = Array("3E80\r\n".utf8) + part + Array("\r\n".utf8)
                return post("Transfer-Encoding: chunked") + Array([[UInt8]](repeating: chunk, count: parts).joined())
            case .trailers:
                return post("Transfer-Encoding: chunked") + Array("0\r\nX: ".utf8) + part + Array("\r\nY: ".utf8)
            case .frame:
                let payload = [UInt8](repeating: 0, count: parts * part.count)
                let count = UInt64(payload.count + 1)
                let length = [127] + withUnsafeBytes(of: count.bigEndian) { Array($0) }
                return handshake() + WebSocketTests.frame(0x82, payload, length: length)
            case .fragments, .textFragments:
                let first: UInt8 = self == .fragments ? 2 : 1
                let frames = (0..<parts).map { WebSocketTests.frame($0 == 0 ? first : 0, part) }
                return handshake() + Array(frames.joined())
            case .unreceived:
                // The first part is kept; the second, which must be kept too, exceeds the limit.
                let length = [127] + withUnsafeBytes(of: UInt64(200_000).bigEndian) { Array($0) }
                let message = WebSocketTests.frame(0x82, [UInt8](repeating: 0, count: 200_000), length: length)
                return handshake("/deaf") + message + message
            case .head: return Array("GET / HTTP/1.1\r\nHost: a\r\nX: ".utf8) + part
            case .answeredLate:
                return Array("GET /late HTTP/1.1\r\nHost: a\r\nX: ".utf8) + part + Array("\r\n\r\n".utf8)
            }
        }

        private func post(_ field: String) -> [UInt8] {
            Array("POST /\(self) HTTP/1.1\r\nHost: a\r\n\(field)\r\n\r\n".utf8)
        }

        private func handshake(_ path: String = "/") -> [UInt8] {
            Array("GET \(path)\(WebSocketTests.handshake.dropFirst(5))\r\n".utf8)
        }
    }

    private func answer(_ request: Request) -> Answer {
        switch request.path {
        case "/": .now(.webSocket(request) { socket in socket.forEach { socket.send($0) } })
        case "/deaf":
            .now(.webSocket(request, limit: 300_000) { _ in after(.seconds(3600)).asPromise() })
        case "/late": .later(after(.seconds(3600)).map { Response(.ok) })
        case "/text": .later(request.body.text().map { Response("\($0.utf8.count)\n") })
        default: .later(request.body.bytes().map { Response("\($0.count)\n") })
        }
    }

    /// All clients together hold more than the limit, and two of them less, whatever the capacity of their arrays.
    @Test(.inRealTime, arguments: Form.allCases) func boundsWhatClientsMakeAServerHold(form: Form) throws {
        let loop = EventLoop.current
        let bytes = form.bytes
        var errors: [CInt] = []
        let onError = { (error: any Error, _: Connection) in errors.append((error as? SystemError)?.code ?? 0) }
        var sessions: [Connection] = []
        var options = HTTPOptions()
        options.maxHead = 20_000
        try serveHTTP { listener in
            listener.serve(ServeOptions(memoryLimit: 4 * bytes.count), onError: onError) { connection in
                sessions.append(connection)
                return connection.serveHTTP(options, onError: onError) { request in answer(request) }
            }
        }
        for number in 0..<8 {
            let client = try connected()
            client.write(bytes).catch(policy: .allErrors) { _ in }
            try loop.run(until: {
                number < sessions.count && (sessions[number].isClosed || sessions[number].bytesReceived == bytes.count)
            })
            try loop.turn(.poll)
            if number < 2 { expectEqual(listener.evictedConnections, 0) }
        }
        expect(listener.evictedConnections >= 4)
        expect(errors.count >= 4 && errors.allSatisfy { $0 == ENOBUFS })
        sessions = []
        listener.drain(deadline: .zero)
    }

    /// One after the other, on kept connections.
    @Test(.inRealTime) func whatHasBeenAnsweredNoLongerCounts() throws {
        try serve(serving: ServeOptions(memoryLimit: 2_000_000), answer)
        let clients = try (0..<3).map { _ in try connected() }
        let body = [UInt8](repeating: 0x78, count: 400_000)
        let chunk = Array("61A80\r\n".utf8) + body + Array("\r\n0\r\nX: y\r\n\r\n".utf8)
        for number in 0..<30 {
            let client = clients[number % 3]
            let isChunked = number % 2 == 0
            let field = isChunked ? "Transfer-Encoding: chunked" : "Content-Length: 400000"
            let head = Array("POST /bytes HTTP/1.1\r\nHost: a\r\n\(field)\r\n\r\n".utf8)
            client.write(head + (isChunked ? chunk : body)).catch(policy: .allErrors) { _ in }
            let answer = try hang(client.read(until: "\r\n\r\n").then { _ in client.readLine() }, timeout: patience)
            expectEqual(answer, "400000")
        }
        expectEqual(listener.evictedConnections, 0)
    }

    /// Servers that send bodies without their last byte.
    @Test(.inRealTime) func boundsWhatServersMakeAClientHold() throws {
        var servers: [Connection] = []
        try servePeer { connection in
            servers.append(connection)
            let head = Array("HTTP/1.1 200 OK\r\nContent-Length: 400001\r\n\r\n".utf8)
            return connection.read(until: "\r\n\r\n").then { _ -> Promise<Void> in
                connection.write(head + [UInt8](repeating: 0, count: 400_000)).catch(policy: .allErrors) { _ in }
                return connection.peerGone().asVoid().asPromise()
            }
        }
        var options = HTTPClient.Options()
        options.connections.memoryLimit = 1_000_000
        useClient(options)
        let bodies = (0..<3).map { _ in client.fetch("http://\(address)/").then { $0.body.bytes() } }
        let (first, resolver) = Promise<Void>.pending()
        for body in bodies { body.ensure { resolver.fulfill() }.catch(policy: .allErrors) { _ in } }
        try? hang(first, timeout: patience)
        let failed = bodies.filter { !$0.isPending }
        let errors = failed.map(\.error)
        expect(!errors.isEmpty && errors.allSatisfy { ($0 as? SystemError)?.code == ENOBUFS }, "\(errors)")
        for server in servers { server.write([0]).catch(policy: .allErrors) { _ in } }
        for body in bodies.filter(\.isPending) { expectEqual(try hang(body, timeout: patience).count, 400_001) }
    }
}
