@testable import ReactorHTTP

/// The client's side of a WebSocket: RFC 6455.
struct WebSocketClientTests {
    // MARK: With the library's own server

    private func withEcho(
        protocols: [String] = [], _ body: (HTTPClient, String, _ requests: () -> [Request]) throws -> Void
    ) throws {
        var requests: [Request] = []
        let handler = { (request: Request) -> Answer in
            requests.append(request)
            return .now(
                .webSocket(request, protocols: protocols, limit: 4 << 20) { socket in
                    socket.forEach { socket.send($0).asVoid() }
                })
        }
        try withServer(handler) { address, listener in
            let client = HTTPClient()
            try body(client, "ws://\(address)", { requests })
            client.close()
            // Nobody waits for the time limit of a close.
            try EventLoop.current.run(until: { listener.activeConnections == 0 })
        }
    }

    @Test func messagesOfEachLengthGoBothWays() throws {
        try withEcho { client, base, _ in
            let socket = try hang(client.webSocket(base, limit: 4 << 20), timeout: patience)
            for count in [0, 1, 7, 8, 9, 125, 126, 127, 65_535, 65_536, 1_000_003] {
                let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) }
                let text = String(repeating: "é", count: count)
                for message in [WebSocket.Message.bytes(bytes), .text(text)] {
                    socket.send(message)
                    let answer = try hang(socket.receive(), timeout: patience)
                    expect(answer == message, "\(count)")
                }
            }
            try hang(socket.close(), timeout: patience)
            expectEqual(try hang(socket.receive(), timeout: patience), nil)
            #expect(throws: WebSocketError.self) { try hang(socket.send("late")) }
        }
    }

    @Test func theHandshakeSaysWhatTheProgramWants() throws {
        try withEcho(protocols: ["b", "a"]) { client, base, requests in
            let fields: Headers = ["Authorization": "secret", "Origin": "http://a.example", "Host": "virtual.example"]
            let agreed: [([String], String?)] = [(["a", "b"], "b"), (["a"], "a"), (["c"], nil), ([], nil)]
            for (offered, chosen) in agreed {
                let connecting = client.webSocket(base + "/chat?room=1#x", protocols: offered, headers: fields)
                let socket = try hang(connecting, timeout: patience)
                expectEqual(socket.subprotocol, chosen)
                try hang(socket.close(), timeout: patience)
            }
            let request = requests()[0]
            expectEqual(request.target, "/chat?room=1")
            expectEqual(request.headers["authorization"], "secret")
            expectEqual(request.headers["origin"], "http://a.example")
            expectEqual(request.headers.all("host"), ["virtual.example"])
            expectEqual(request.headers["user-agent"], "swift-reactor")
            expectEqual(Set(requests().map { $0.headers["sec-websocket-key"] }).count, 4)
        }
    }

    @Test(.served) func theServerMayClose() throws {
        try serve { request in
            Answer.now(.webSocket(request) { $0.send("bye").then { after(.milliseconds(1)) } })
        }
        let socket = try hang(connectWebSocket(to: "ws://\(address)"), timeout: patience)
        var messages: [WebSocket.Message] = []
        try hang(socket.forEach { messages.append($0) }, timeout: patience)
        expectEqual(messages, [.text("bye")])
        try EventLoop.current.run(until: { listener.activeConnections == 0 })
    }

    /// A socket that never receives also ends with its server.
    @Test(.served) func aSocketThatOnlySendsEnds() throws {
        try serve { request in Answer.now(.webSocket(request) { $0.receive().asVoid() }) }
        let socket = try hang(connectWebSocket(to: "ws://\(address)"), timeout: patience)
        socket.send("a")
        let ended = repeatWhile {
            after(.milliseconds(1)).then { socket.send("b") }.map { true }.recover { _ in .value(false) }
        }
        try hang(ended, timeout: patience)
        try EventLoop.current.run(until: { listener.activeConnections == 0 })
    }

    // MARK: With a peer of the test's own

    static func accepting(_ head: String, _ fields: String = "") -> String {
        let key = head.components("Sec-WebSocket-Key: ").last!.prefix(24)
        return "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            + "Sec-WebSocket-Accept: \(webSocketAccept(String(key)))\r\n\(fields)\r\n"
    }

    /// Returns the address of a peer that answers the handshake with `answer`, and continues with `serve`, on a virtual
    /// clock. No connection is left in the end.
    private func servePeer(
        answer: @escaping (String) -> String = { accepting($0) },
        _ serve: @escaping (Connection) -> Promise<Void> = { $0.forEachChunk { _ in .value } }
    ) throws -> String {
        let listener = try Listener.bind("127.0.0.1:0")
        listener.serve { connection in
            connection.read(until: "\r\n\r\n").then { head -> Promise<Void> in
                guard let head else { return .value }
                return connection.write(answer(String(decoding: head, as: UTF8.self))).then { serve(connection) }
            }
        }
        atEnd {
            try EventLoop.current.run(until: { listener.activeConnections == 0 })
            listener.close()
        }
        return "ws://\(listener.localAddress)"
    }

    private func withPeer(
        _ serve: @escaping (Connection) -> Promise<Void>, _ body: (String) throws -> Void
    ) throws { try inVirtualTime { try body(servePeer(serve)) } }

    private struct Frame: Equatable {
        var first: UInt8
        var payload: [UInt8]
        var mask: [UInt8] = []

        static func == (one: Frame, other: Frame) -> Bool { (one.first, one.payload) == (other.first, other.payload) }
    }

    /// The next frame of the client, which must be masked.
    private static func frame(_ connection: Connection) -> Promise<Frame> {
        func read(_ count: Int) -> Promise<[UInt8]> { count == 0 ? .value([]) : connection.read(exactly: count) }
        return read(2).then { head -> Promise<Frame> in
            expect(head[1] & 0x80 != 0, "a client must mask")
            let size = [126: 2, 127: 8][head[1] & 0x7F] ?? 0
            return read(size).then { length -> Promise<Frame> in
                let count = size == 0 ? Int(head[1] & 0x7F) : length.reduce(0) { $0 << 8 | Int($1) }
                return read(4).then { mask in
                    read(count).map { payload in
                        Frame(first: head[0], payload: payload.enumerated().map { $1 ^ mask[$0 & 3] }, mask: mask)
                    }
                }
            }
        }
    }

    @Test(.inLoop) func theHeadOfTheHandshake() throws {
        var head = ""
        let answer = { (text: String) -> String in
            head = text
            return Self.accepting(text)
        }
        let base = try servePeer(answer: answer)
        var options = HTTPClient.Options()
        options.userAgent = nil
        let connecting = HTTPClient(options).webSocket(
            base + "/a?b", protocols: ["x", "y"], headers: ["Connection": "close", "A": "b"])
        let socket = try hang(connecting, timeout: .seconds(1))
        expectEqual(socket.subprotocol, nil)
        socket.close()
        let key = head.components("Sec-WebSocket-Key: ").last!.prefix(24)
        expectEqual(
            head,
            """
            GET /a?b HTTP/1.1\r
            Host: \(base.dropFirst(5))\r
            A: b\r
            Upgrade: websocket\r
            Connection: Upgrade\r
            Sec-WebSocket-Version: 13\r
            Sec-WebSocket-Key: \(key)\r
            Sec-WebSocket-Protocol: x, y
            """)
    }

    @Test func eachFrameHasAMaskOfItsOwn() throws {
        var frames: [Frame] = []
        let serve = { (connection: Connection) in
            repeatWhile { Self.frame(connection).map { frames.append($0) }.map { frames.count < 5 } }
        }
        try withPeer(serve) { base in
            let socket = try hang(connectWebSocket(to: base), timeout: .seconds(1))
            socket.send("twenty-one bytes: né")
            socket.send(.bytes([1, 2, 3]))
            broadcast(.text("b"), to: [socket, socket], overflow: .drop)
            socket.ping()
            // It ends without a close.
            #expect(throws: WebSocketError.self) { try hang(socket.receive(), timeout: .seconds(10)) }
        }
        expectEqual(frames.map(\.first), [0x81, 0x82, 0x81, 0x81, 0x89])
        expectEqual(frames.map(\.payload), [Array("twenty-one bytes: né".utf8), [1, 2, 3], [0x62], [0x62], []])
        expectEqual(Set(frames.map(\.mask)).count, 5)
        expect(!frames.contains { $0.mask == [0, 0, 0, 0] })
    }

    struct Refusal: Sendable, CustomTestStringConvertible {
        var line = "HTTP/1.1 101 x"
        var fields = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: KEY\r\n"
        let error: String
        var testDescription: String { "\(line) \(fields)" }
    }

    @Test(
        .inLoop,
        arguments: [
            Refusal(line: "HTTP/1.1 200 OK", error: "no WebSocket: 200 OK"),
            Refusal(line: "HTTP/1.1 301 x", fields: "Location: /\r\nContent-Length: 0\r\n", error: "no WebSocket: 301"),
            Refusal(line: "HTTP/1.1 401 x", fields: "", error: "no WebSocket: 401"),
            Refusal(line: "HTTP/1.1 426 x", error: "no WebSocket: 426"),
            Refusal(line: "HTTP/1.0 101 x", error: ""),
            Refusal(fields: "Upgrade: websocket\r\nConnection: Upgrade\r\n", error: "another key"),
            Refusal(
                fields:
                    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n",
                error: "another key"),
            Refusal(
                fields:
                    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: KEY\r\nSec-WebSocket-Accept: KEY\r\n",
                error: "another key"),
            Refusal(fields: "Connection: Upgrade\r\nSec-WebSocket-Accept: KEY\r\n", error: "something else"),
            Refusal(
                fields: "Upgrade: h2c\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: KEY\r\n", error: "something else"),
            Refusal(
                fields: "Upgrade: websocket\r\nConnection: close\r\nSec-WebSocket-Accept: KEY\r\n",
                error: "something else"),
            Refusal(
                fields: "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: KEY\r\n"
                    + "Sec-WebSocket-Extensions: permessage-deflate\r\n", error: "an extension"),
            Refusal(
                fields: "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: KEY\r\n"
                    + "Sec-WebSocket-Protocol: c\r\n", error: "a subprotocol"),
            Refusal(
                fields: "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: KEY\r\n"
                    + "Sec-WebSocket-Protocol: a\r\nSec-WebSocket-Protocol: a\r\n", error: "a subprotocol"),
            Refusal(line: "SSH-2.0-x", error: "502"), Refusal(fields: "A b\r\n", error: "502"),
            Refusal(fields: "A: \(String(repeating: "x", count: 100_000))\r\n", error: "65536"),
        ])
    func whatIsNoAnswerToTheHandshakeIsRefused(_ refusal: Refusal) throws {
        let answer = { (head: String) -> String in
            let key = webSocketAccept(String(head.components("Sec-WebSocket-Key: ").last!.prefix(24)))
            return "\(refusal.line)\r\n\(refusal.fields.replacing("KEY", with: key))\r\n"
        }
        let base = try servePeer(answer: answer)
        let error = #expect(throws: (any Error).self) {
            try hang(connectWebSocket(to: base, protocols: ["a", "b"]), timeout: .seconds(10))
        }
        expect(error.map { "\($0)".contains(refusal.error) } == true, "\(String(describing: error))")
        expect(error is FetchError || error is HTTPError, "\(String(describing: error))")
    }

    enum Silence: CaseIterable { case closes, resets, saysNothing, saysHalf, closesInside }

    @Test(.inLoop, arguments: Silence.allCases) func aPeerWithoutAnAnswerIsGivenUp(_ silence: Silence) throws {
        let loop = EventLoop.current
        let listener = try Listener.bind("127.0.0.1:0")
        listener.serve { connection -> Promise<Void> in
            switch silence {
            case .closes: .value
            case .resets: connection.read(exactly: 1).done { _ in connection.abort() }
            case .saysNothing: connection.forEachChunk { _ in .value }
            case .saysHalf: connection.write("HTTP/1.1 101 ").then { connection.forEachChunk { _ in .value } }
            case .closesInside: connection.readLine().then { _ in connection.write("HTTP/1.1 101 x\r\nA: b") }
            }
        }
        let begin = loop.now
        let connecting = connectWebSocket(to: "ws://\(listener.localAddress)")
        let error = #expect(throws: (any Error).self) { try hang(connecting, timeout: .seconds(3600)) }
        let time = begin.duration(to: loop.now)
        switch silence {
        case .closes, .closesInside:
            expect(error as? FetchError == .endedEarly || error is SystemError, "\(error!)")
        case .resets: expect(error is SystemError, "\(error!)")
        case .saysNothing: expectEqual(error as? FetchError, .timedOut(.firstByte))
        // Bytes that arrive before the request are no answer to it.
        case .saysHalf: expect(error is HTTPError || error as? FetchError == .timedOut(.firstByte), "\(error!)")
        }
        expect(time <= .seconds(31), "\(time)")
        try loop.run(until: { listener.activeConnections == 0 })
        listener.close()
    }

    /// The first frames often arrive with the head.
    @Test(.inLoop) func framesBehindTheHeadAreReceived() throws {
        let answer = { (head: String) in Self.accepting(head) + "\u{1}\u{3}Hel" }
        let serve = { (connection: Connection) -> Promise<Void> in
            connection.write([0x89, 1, 0x70, 0x80, 2, 0x6C, 0x6F, 0x82, 1, 7]).then { Self.frame(connection) }.then {
                pong in
                expectEqual(pong, Frame(first: 0x8A, payload: [0x70]))
                return connection.write([0x88, 2, 0x03, 0xE8])
            }.then { Self.frame(connection) }.done { close in
                expectEqual(close, Frame(first: 0x88, payload: [0x03, 0xE8]))
            }
        }
        let base = try servePeer(answer: answer, serve)
        let socket = try hang(connectWebSocket(to: base), timeout: .seconds(1))
        var messages: [WebSocket.Message] = []
        try hang(socket.forEach { messages.append($0) }, timeout: .seconds(10))
        expectEqual(messages, [.text("Hello"), .bytes([7])])
    }

    /// RFC 6455, section 5.1: a server must not mask, and a client must fail the connection.
    @Test(
        arguments: [
            (WebSocketTests.frame(0x81, "a"), 1002), ([0x83, 0], 1002), ([0xC1, 0], 1002), ([0x80, 0], 1002),
            ([0x81, 1, 0xFF], 1007), ([0x82, 126, 0x10, 0], 1009), ([0x88, 1, 3], 1002), ([0x09, 0], 1002),
        ] as [([UInt8], Int)])
    func aBrokenFrameIsClosedWithItsCode(_ frame: [UInt8], _ code: Int) throws {
        var closing: Frame?
        let serve = { (connection: Connection) -> Promise<Void> in
            connection.write(frame).then { Self.frame(connection) }.get { closing = $0 }
                .then { _ in connection.forEachChunk { _ in .value } }
        }
        try withPeer(serve) { base in
            let socket = try hang(connectWebSocket(to: base, limit: 1000), timeout: .seconds(1))
            let error = #expect(throws: WebSocketError.self) { try hang(socket.receive(), timeout: .seconds(10)) }
            expectEqual(error.map { Int($0.code) }, code)
        }
        expectEqual(closing, Frame(first: 0x88, payload: [UInt8(code >> 8), UInt8(code & 255)]))
    }

    @Test func aPeerThatEndsWithoutACloseIsAnError() throws {
        for resets in [false, true] {
            let serve = { (connection: Connection) -> Promise<Void> in
                connection.write([0x81, 1, 0x61]).then { after(.seconds(1)) }.done { if resets { connection.abort() } }
            }
            try withPeer(serve) { base in
                let socket = try hang(connectWebSocket(to: base), timeout: .seconds(1))
                expectEqual(try hang(socket.receive(), timeout: .seconds(10)), .text("a"))
                let error = #expect(throws: (any Error).self) { try hang(socket.receive(), timeout: .seconds(10)) }
                expect(resets ? error is SystemError : (error as? WebSocketError)?.code == 1006, "\(error!)")
            }
        }
    }

    /// By a heartbeat.
    @Test func aSilentPeerIsAskedForASignOfLife() throws {
        var pings = 0
        let serve = { (connection: Connection) -> Promise<Void> in
            repeatWhile {
                Self.frame(connection).then { frame -> Promise<Bool> in
                    expectEqual(frame, Frame(first: 0x89, payload: []))
                    pings += 1
                    return pings < 3 ? connection.write([0x8A, 0]).map { true } : .value(false)
                }
            }.then { connection.forEachChunk { _ in .value } }
        }
        try withPeer(serve) { base in
            let socket = try hang(connectWebSocket(to: base, idle: .seconds(10)), timeout: .seconds(1))
            let begin = EventLoop.current.now
            let error = #expect(throws: WebSocketError.self) { try hang(socket.receive(), timeout: .seconds(3600)) }
            expectEqual(error?.code, 1006)
            expectEqual(begin.duration(to: EventLoop.current.now), .seconds(40))
        }
        expectEqual(pings, 3)
    }

    @Test(.inLoop) func aPeerThatDoesNotReadIsGivenUp() throws {
        let base = try servePeer({ connection in after(.seconds(1000)).asPromise() })
        let socket = try hang(connectWebSocket(to: base, idle: .seconds(10)), timeout: .seconds(1))
        let large = socket.send(.bytes([UInt8](repeating: 0, count: 3 << 20)))
        large.catch(policy: .allErrors) { _ in }
        let error = #expect(throws: WebSocketError.self) { try hang(socket.receive(), timeout: .seconds(3600)) }
        expectEqual(error?.code, 1006)
    }

    @Test(.inLoop, arguments: [true, false]) func aCloseWaitsForThePeerForFiveSeconds(_ answers: Bool) throws {
        let serve = { (connection: Connection) -> Promise<Void> in
            Self.frame(connection).then { frame -> Promise<Void> in
                expectEqual(frame, Frame(first: 0x88, payload: [0x0F, 0xA0]))
                return answers ? connection.write([0x81, 1, 0x61, 0x88, 2, 0x0F, 0xA0]) : .value
            }.then { connection.forEachChunk { _ in .value } }
        }
        let base = try servePeer(serve)
        let socket = try hang(connectWebSocket(to: base), timeout: .seconds(1))
        let receiving = socket.receive()
        let begin = EventLoop.current.now
        try hang(socket.close(code: 4000), timeout: .seconds(60))
        expectEqual(begin.duration(to: EventLoop.current.now), answers ? .zero : .seconds(5))
        expectEqual(try hang(receiving, timeout: .seconds(10)), nil)
    }

    /// The connection ends, however little a caller waits.
    @Test(.inLoop, arguments: [true, false]) func aCloseThatIsCancelledGoesOn(byItsFirstCaller: Bool) throws {
        let base = try servePeer()
        let socket = try hang(connectWebSocket(to: base, idle: nil), timeout: .seconds(1))
        defer { socket.connection.abort() }
        let begin = EventLoop.current.now
        let (first, second) = (socket.close(), socket.close())
        #expect(throws: PromiseError.timedOut) {
            try hang((byItsFirstCaller ? first : second).timeout(.seconds(1)), timeout: .seconds(60))
        }
        (byItsFirstCaller ? second : first).cancel()
        try hang(socket.close(), timeout: .seconds(60))
        expectEqual(begin.duration(to: EventLoop.current.now), .seconds(5))
        expect(socket.connection.isClosed)
    }

    @Test(.inLoop) func aCloseDropsWhatNobodyHasReceived() throws {
        let serve = { (connection: Connection) -> Promise<Void> in
            connection.write([0x81, 1, 0x61, 0x81, 1, 0x62]).then { Self.frame(connection) }
                .then { _ in connection.write([0x88, 0]) }.then { connection.forEachChunk { _ in .value } }
        }
        let base = try servePeer(serve)
        let socket = try hang(connectWebSocket(to: base), timeout: .seconds(1))
        hang(after(.seconds(1)))
        let closed = socket.close()
        expectEqual(try hang(socket.receive(), timeout: .seconds(1)), nil)
        try hang(closed, timeout: .seconds(10))
    }

    /// The socket owns the connection, even if the server leaves closing to the client, and the program keeps the
    /// socket.
    @Test(.inLoop, arguments: ["the server", "this side", "a broken frame"]) func theConnectionEndsWithTheSocket(
        _ how: String
    )
        throws
    {
        var hasEnded = false
        let serve = { (connection: Connection) -> Promise<Void> in
            let first: [UInt8] = how == "the server" ? [0x88, 0] : how == "this side" ? [] : [0x83, 0]
            return connection.write(first).then { Self.frame(connection) }
                .then { _ in how == "this side" ? connection.write([0x88, 0]) : .value }
                .then { connection.forEachChunk { _ in .value } }.done { hasEnded = true }
        }
        let base = try servePeer(serve)
        let socket = try hang(connectWebSocket(to: base), timeout: .seconds(1))
        if how == "this side" { socket.close() }
        hang(after(.seconds(1)))
        expect(hasEnded)
        withExtendedLifetime(socket) {}
    }

    @Test func aSocketThatNobodyRefersToAnswersAndEnds() throws {
        let serve = { (connection: Connection) -> Promise<Void> in
            after(.seconds(1)).then { connection.write([0x89, 0]) }.then { Self.frame(connection) }.then { frame in
                expectEqual(frame, Frame(first: 0x8A, payload: []))
                return connection.write([0x88, 0])
            }.then { Self.frame(connection) }.then { frame -> Promise<Void> in
                expectEqual(frame, Frame(first: 0x88, payload: []))
                return connection.forEachChunk { _ in .value }
            }
        }
        try withPeer(serve) { base in _ = try hang(connectWebSocket(to: base).asVoid(), timeout: .seconds(1)) }
    }

    @Test(arguments: [false, true]) func nothingIsLeftBehindTheLoop(_ receives: Bool) throws {
        weak var left: WebSocket?
        try EventLoop.withLoop { _ in
            let listener = try Listener.bind("127.0.0.1:0")
            listener.serveHTTP { request in Response.webSocket(request) { socket in socket.forEach { _ in } } }
            let socket = try hang(connectWebSocket(to: "ws://\(listener.localAddress)"), timeout: patience)
            if receives { socket.receive().catch(policy: .allErrors) { _ in } }
            left = socket
        }
        expect(left == nil)
    }

    /// Frames with random changes, in two parts, from servers that then end, reset or wait.
    @Test(arguments: 0..<4) func noFrameStrandsTheClient(seed: Int) throws {
        var dice = SplitMix64(UInt64(seed))
        let frames: [[UInt8]] = [
            [0x81, 5] + Array("hello".utf8), [0x82, 2, 0, 255], [0x01, 1, 0x61], [0x80, 1, 0x62], [0x89, 1, 0x70],
            [0x8A, 0],
            [0x82, 126, 0, 200] + [UInt8](repeating: 7, count: 200), [0x88, 2, 0x03, 0xE8], [0x88, 0],
        ]
        let serve = { (connection: Connection) -> Promise<Void> in
            var bytes = (0..<Int.random(in: 1...6, using: &dice)).flatMap { _ in frames.randomElement(using: &dice)! }
            for _ in 0..<Int.random(in: 0...2, using: &dice) where !bytes.isEmpty {
                let index = bytes.indices.randomElement(using: &dice)!
                switch Int.random(in: 0..<4, using: &dice) {
                case 0: bytes[index] = .random(in: 0...255, using: &dice)
                case 1: bytes.remove(at: index)
                case 2: bytes.insert(.random(in: 0...255, using: &dice), at: index)
                default: bytes.removeSubrange(index...)
                }
            }
            let (cut, end) = (Int.random(in: 0...bytes.count, using: &dice), Int.random(in: 0..<3, using: &dice))
            let sent = connection.write(bytes[..<cut]).then { after(.seconds(1)) }.then {
                connection.write(bytes[cut...])
            }
            return sent.then { after(.seconds(1)) }.then { () -> Promise<Void> in
                if end == 0 { connection.abort() }
                return end == 2 ? connection.forEachChunk { _ in .value } : .value
            }
        }
        var (ended, failed) = (0, 0)
        try withPeer(serve) { base in
            for _ in 0..<50 {
                let socket = try hang(connectWebSocket(to: base, idle: .seconds(10)), timeout: .seconds(1))
                let begin = EventLoop.current.now
                do {
                    try hang(socket.forEach { _ in }, timeout: .seconds(3600))
                    ended += 1
                } catch { failed += 1 }
                expect(begin.duration(to: EventLoop.current.now) < .seconds(60))
                // Nothing is sent to a socket that has ended.
                #expect(throws: (any Error).self) { try hang(socket.send("late"), timeout: .seconds(60)) }
            }
        }
        expect(ended > 5 && failed > 5, "\(ended) \(failed)")
    }

    // MARK: Ways there

    enum Stage: CaseIterable { case lookup, handshakeOfTLS, handshake, open }

    @Test(.inLoop, arguments: Stage.allCases) func itCanBeCancelledInEachStage(_ stage: Stage) throws {
        struct Slow: NameLookup {
            func addresses(of host: String, port: UInt16) -> Promise<[SocketAddress]> {
                after(.seconds(1000)).map { [] }
            }
        }
        let serve = { (connection: Connection) in connection.forEachChunk { _ in .value } }
        let base = try servePeer(answer: { stage == .handshake ? "" : Self.accepting($0) }, serve)
        var options = HTTPClient.Options()
        options.startTLS = { connection, _ in connection.read(exactly: 1).map { _ in connection } }
        let client = stage == .lookup ? HTTPClient(options, lookup: Slow()) : HTTPClient(options)
        var address = stage == .lookup ? "ws://a.example" : base
        if stage == .handshakeOfTLS { address = "wss" + base.dropFirst(2) }
        var socket: WebSocket?
        let connecting = client.webSocket(address).get { socket = $0 }
        hang(after(.seconds(1)))
        expectEqual(connecting.isPending, stage != .open)
        connecting.cancel()
        if stage != .open {
            // After its connection has been closed.
            let error = #expect(throws: (any Error).self) { try hang(connecting, timeout: .seconds(1)) }
            expectEqual(error?.isCancelled, true)
        }
        expectEqual(socket == nil, stage != .open)
        socket?.close()
    }

    @Test(.inLoop) func theConnectHasALimitOfTime() throws {
        let base = try servePeer()
        var options = HTTPClient.Options()
        options.connections.makeTimeout = .seconds(7)
        options.startTLS = { connection, _ in connection.read(exactly: 1).map { _ in connection } }
        let begin = EventLoop.current.now
        #expect(throws: FetchError.timedOut(.connect)) {
            try hang(HTTPClient(options).webSocket("wss" + base.dropFirst(2)), timeout: .seconds(60))
        }
        expectEqual(begin.duration(to: EventLoop.current.now), .seconds(7))
    }

    @Test func tlsIsThatOfTheClient() throws {
        try withEcho { _, base, _ in
            let secure = "wss" + base.dropFirst(2)
            #expect(throws: FetchError.noTLS(String(base.dropFirst(5)))) { try hang(connectWebSocket(to: secure)) }
            let hosts = Shared<[String]>([])
            var options = HTTPClient.Options()
            options.startTLS = { connection, host in
                hosts.change { $0.append(host) }
                return .value(connection)
            }
            let socket = try hang(HTTPClient(options).webSocket(secure), timeout: patience)
            expectEqual(hosts.value, ["127.0.0.1"])
            try hang(socket.close(), timeout: patience)
        }
    }

    /// RFC 6455, section 4.1: also without TLS by a tunnel.
    @Test(arguments: ["ws", "wss"]) func aProxyOpensATunnel(_ scheme: String) throws {
        try withEcho { _, base, _ in
            let server = try SocketAddress(String(base.dropFirst(5)))
            let proxy = try ProxyTests.SmallProxy(to: server)
            var options = proxy.options
            options.proxies.http = "http://me:secret@\(proxy.listener.localAddress)"
            options.proxies.https = options.proxies.http
            let socket = try hang(HTTPClient(options).webSocket("\(scheme)://a.example/x"), timeout: patience)
            socket.send("a")
            expectEqual(try hang(socket.receive(), timeout: patience), .text("a"))
            try hang(socket.close(), timeout: patience)
            let target = "a.example:\(scheme == "ws" ? 80 : 443)"
            expectEqual(
                proxy.heads,
                ["CONNECT \(target) HTTP/1.1\r\nHost: \(target)\r\nProxy-Authorization: Basic bWU6c2VjcmV0"])
            proxy.listener.close()
        }
    }

    @Test(
        .inRealTime,
        arguments: [
            ("http://a/", "neither ws:// nor wss://"), ("ws:/a", "neither"), ("ws://", "no host"),
            ("ws://u:secret@a/", "***@a/"),
            ("ws://a b/", "%20"), ("ws://a..b/", "nor the name of a host"),
        ])
    func badAddressesAreRefused(_ address: String, _ reason: String) {
        let error = #expect(throws: FetchError.self) { try hang(connectWebSocket(to: address), timeout: patience) }
        expect(error.map { "\($0)".contains(reason) && !"\($0)".contains("secret") } == true, "\(error!)")
    }

    @Test(.inRealTime) func handshakesThatCannotBeMadeSoAreRefused() {
        let fields: [(Headers, [String])] = [
            (["Sec-WebSocket-Key": "x"], []), (["sec-websocket-protocol": "x"], []), (["Upgrade": "x"], []),
            (["Host": "a b"], []), ([:], [""]), ([:], ["a b"]), ([:], ["a", "a"]), ([:], ["a,b"]),
        ]
        for (headers, protocols) in fields {
            let error = #expect(throws: FetchError.self) {
                try hang(connectWebSocket(to: "ws://127.0.0.1:1", protocols: protocols, headers: headers))
            }
            if case .badRequest? = error { continue }
            Issue.record("\(String(describing: error)) for \(headers) \(protocols)")
        }
    }

    // MARK: Broadcast

    @Test(.served) func aBroadcastReachesAll() throws {
        var members: [WebSocket] = []
        try serve { request in
            Answer.now(
                .webSocket(request) { socket in
                    members.append(socket)
                    return socket.forEach { message in
                        let count = broadcast(message, to: members, overflow: .abort)
                        socket.send("to \(count)")
                    }
                })
        }
        let sockets = try (0..<3).map { _ in try hang(connectWebSocket(to: "ws://\(address)"), timeout: patience) }
        let gone = try hang(connectWebSocket(to: "ws://\(address)"), timeout: patience)
        try EventLoop.current.run(until: { members.count == 4 })
        try hang(gone.close(), timeout: patience)
        for message in [
            WebSocket.Message.text("hello"), .bytes([0, 255]), .text(""),
            .bytes([UInt8](repeating: 1, count: 70_000)),
        ] {
            sockets[0].send(message)
            for socket in sockets { expectEqual(try hang(socket.receive(), timeout: patience), message) }
            expectEqual(try hang(sockets[0].receive(), timeout: patience), .text("to 3"))
        }
        try hang(when(fulfilled: sockets.map { $0.close() }), timeout: patience)
    }

    @Test(arguments: [WriteOverflow.drop, .abort]) func oneThatDoesNotReadLosesMessagesOrItsConnection(
        _ overflow: WriteOverflow
    ) throws {
        try withVirtualTime { _ in
            let (quick, one) = try Connection.pair()
            let (slow, other) = try Connection.pair()
            var members: [WebSocket] = []
            var ends: [String] = []
            let served = [one, other].map { connection in
                connection.writeQueueLimit = 100_000
                return connection.serveHTTP { request in
                    Response.webSocket(request) { socket in
                        members.append(socket)
                        return socket.forEach { _ in }.tapError { ends.append("\($0)") }
                    }
                }
            }
            for client in [quick, slow] { try hang(client.write(WebSocketTests.handshake + "\r\n")) }
            _ = try hang(when(fulfilled: [quick, slow].map { $0.read(until: "\r\n\r\n") }))
            var received = 0
            let reading = quick.forEachChunk { received += $0.byteCount }
            let message = WebSocket.Message.bytes([UInt8](repeating: 1, count: 50_000))
            var counts: [Int] = []
            for _ in 0..<100 {
                counts.append(broadcast(message, to: members, overflow: overflow))
                hang(after(.milliseconds(1)))
            }
            expectEqual(received, 100 * 50_004)
            expectEqual(counts[0], 2)
            expectEqual(counts[99], 1)
            expectEqual(ends, overflow == .abort ? ["1006: the peer does not read"] : [])
            if overflow == .drop {
                // It gets later ones, complete.
                var frames = 0
                let frame = slow.forEachFrame(FixedLengthDecoder(50_004)) { _, _ in frames += 1 }
                hang(after(.milliseconds(1)))
                expectEqual(frames, counts.filter { $0 == 2 }.count)
                expectEqual(broadcast(message, to: members, overflow: overflow), 2)
                hang(after(.milliseconds(1)))
                expectEqual(frames, counts.filter { $0 == 2 }.count + 1)
                frame.cancel()
            }
            for client in [quick, slow] { client.abort() }
            _ = hang(when(resolved: served + [reading]))
        }
    }
}

/// Frames of one length.
private struct FixedLengthDecoder: FrameDecoder {
    let length: Int
    init(_ length: Int) { self.length = length }
    func decode(_ bytes: RawSpan) throws -> DecodedFrame<Int> {
        bytes.byteCount < length ? .incomplete(missing: length - bytes.byteCount) : .frame(length, consumed: length)
    }
}
