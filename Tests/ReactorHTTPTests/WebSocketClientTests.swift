@testable import ReactorHTTP

/// The client's side of a WebSocket: RFC 6455.
struct WebSocketClientTests {
    // MARK: With the library's own server

    private var base: String { "ws://\(address)" }

    private func serveEcho(protocols: [String] = [], _ note: @escaping (Request) -> Void = { _ in }) throws {
        try serve { request in
            note(request)
            return .now(
                .webSocket(request, protocols: protocols, limit: 4 << 20) { socket in
                    socket.forEach { socket.send($0).asVoid() }
                })
        }
    }

    @Test(.served) func messagesOfEachLengthGoBothWays() throws {
        try serveEcho()
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
        // Nobody waits for the time limit of a close.
        try EventLoop.current.run(until: { listener.activeConnections == 0 })
    }

    @Test(.served) func theServerChoosesASubprotocol() throws {
        var keys: Set<String?> = []
        try serveEcho(protocols: ["b", "a"]) { keys.insert($0.headers["sec-websocket-key"]) }
        let agreed: [([String], String?)] = [(["a", "b"], "b"), (["a"], "a"), (["c"], nil), ([], nil)]
        for (offered, chosen) in agreed {
            let socket = try hang(client.webSocket(base, protocols: offered), timeout: patience)
            expectEqual(socket.subprotocol, chosen)
            try hang(socket.close(), timeout: patience)
        }
        expectEqual(keys.count, 4)
    }

    private static let long = "x" + String(repeating: "é", count: 70)

    /// A close of each side: with its code and reason, and what the other one learns of it.
    @Test(
        .served, arguments: [true, false],
        [
            (4001, "token expired", "token expired"), (1012, "", ""), (1000, "bye", "bye"),
            (1006, "no code", "no code"),
            // 125 bytes in all, and no half of a character.
            (4999, long, "x" + String(repeating: "é", count: 61)), (3000, "\u{0}\n", "\u{0}\n"),
        ] as [(UInt16, String, String)])
    func theReasonOfACloseReachesTheProgram(
        _ isOfServer: Bool, _ close: (code: UInt16, reason: String, arrived: String)
    ) throws {
        let expected = WebSocketError(close.code == 1006 ? 1000 : close.code, close.arrived)
        var server: WebSocket?
        var messages: [WebSocket.Message] = []
        var ended = false
        try serve { request in
            .now(
                .webSocket(request) { socket in
                    server = socket
                    if isOfServer {
                        socket.send("last")
                        return socket.close(code: close.code, reason: close.reason)
                    }
                    return socket.forEach { messages.append($0) }.ensure { ended = true }
                })
        }
        let socket = try hang(client.webSocket(base), timeout: patience)
        if !isOfServer {
            expectEqual(socket.peerClose, nil)
            socket.send("last")
            try hang(socket.close(code: close.code, reason: close.reason), timeout: patience)
        } else {
            try hang(socket.forEach { messages.append($0) }, timeout: patience)
            ended = true
        }
        try EventLoop.current.run(until: { ended && listener.activeConnections == 0 })
        expectEqual(messages, [.text("last")])
        // The answer has the same code.
        expectEqual(isOfServer ? socket.peerClose : server?.peerClose, expected)
        expectEqual(isOfServer ? server?.peerClose : socket.peerClose, WebSocketError(expected.code, ""))
    }

    @Test(.inLoop, arguments: [[0x88, 0], [0x88, 2, 0x0F, 0xA1], []] as [[UInt8]])
    func aCloseMayHaveNoReason(_ bytes: [UInt8]) throws {
        var answer: [UInt8] = []
        let socket = try connectToPeer { connection in
            if bytes.isEmpty { return .value }
            return connection.write(bytes).then { Self.frame(connection) }.done { answer = $0.payload }
        }
        let received = socket.receive()
        hang(after(.seconds(1)))
        expectEqual(socket.peerClose?.code, bytes.isEmpty ? nil : bytes.count == 2 ? 1005 : 4001)
        expectEqual(received.isFulfilled, !bytes.isEmpty)
        expect((received.error as? WebSocketError)?.code == (bytes.isEmpty ? 1006 : nil))
        expectEqual(answer, bytes.count == 4 ? [0x0F, 0xA1] : [])
    }

    // MARK: With a peer of the test's own

    /// The key in the head of a handshake.
    private static func key(_ head: String) -> String {
        String(head.components("Sec-WebSocket-Key: ").last!.prefix(24))
    }

    private static func accepting(_ head: String) -> String {
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            + "Sec-WebSocket-Accept: \(webSocketAccept(key(head)))\r\n\r\n"
    }

    /// Starts a peer that answers the handshake with `answer`, and continues with `serve`. No connection is left in the
    /// end.
    private func servePeer(
        _ serve: @escaping (Connection) -> Promise<Void> = { $0.forEachChunk { _ in .value } },
        answer: @escaping (String) -> String = { accepting($0) }
    ) throws {
        try ReactorHTTPTests.servePeer { connection in
            connection.read(until: "\r\n\r\n").then { head -> Promise<Void> in
                guard let head else { return .value }
                return connection.write(answer(String(decoding: head, as: UTF8.self))).then { serve(connection) }
            }
        }
        atEnd { try EventLoop.current.run(until: { listener.activeConnections == 0 }) }
    }

    /// Starts such a peer, and connects a socket to it.
    private func connectToPeer(
        idle: Duration? = .seconds(120), limit: Int = 1 << 20,
        _ serve: @escaping (Connection) -> Promise<Void> = { $0.forEachChunk { _ in .value } }
    ) throws -> WebSocket {
        try servePeer(serve)
        return try hang(connectWebSocket(to: base, limit: limit, idle: idle), timeout: .seconds(1))
    }

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
        var heads: [String] = []
        try servePeer(answer: { head in
            heads.append(head)
            return Self.accepting(head)
        })
        for (userAgent, field) in [(nil, "A: b"), ("c", "User-Agent: c\r\nA: b")] {
            var options = HTTPClient.Options()
            options.userAgent = userAgent
            let fields: Headers = ["Connection": "close", "A": "b", "Host": "virtual.example"]
            let connecting = HTTPClient(options).webSocket(base + "/a?b#c", protocols: ["x", "y"], headers: fields)
            let socket = try hang(connecting, timeout: .seconds(1))
            expectEqual(socket.subprotocol, nil)
            socket.close()
            expectEqual(
                heads.last,
                """
                GET /a?b HTTP/1.1\r
                Host: virtual.example\r
                \(field)\r
                Upgrade: websocket\r
                Connection: Upgrade\r
                Sec-WebSocket-Version: 13\r
                Sec-WebSocket-Key: \(Self.key(heads.last!))\r
                Sec-WebSocket-Protocol: x, y
                """)
        }
    }

    @Test(.inLoop) func eachFrameHasAMaskOfItsOwn() throws {
        var frames: [Frame] = []
        let socket = try connectToPeer { connection in
            repeatWhile { Self.frame(connection).map { frames.append($0) }.map { frames.count < 5 } }
        }
        socket.send("twenty-one bytes: né")
        socket.send(.bytes([1, 2, 3]))
        broadcast(.text("b"), to: [socket, socket], overflow: .drop)
        socket.ping()
        // It ends without a close.
        let error = #expect(throws: WebSocketError.self) { try hang(socket.receive(), timeout: .seconds(10)) }
        expectEqual(error?.code, 1006)
        expectEqual(frames.map(\.first), [0x81, 0x82, 0x81, 0x81, 0x89])
        expectEqual(frames.map(\.payload), [Array("twenty-one bytes: né".utf8), [1, 2, 3], [0x62], [0x62], []])
        expectEqual(Set(frames.map(\.mask)).count, 5)
        expect(!frames.contains { $0.mask == [0, 0, 0, 0] })
    }

    private static let (upgrade, connection) = ("Upgrade: websocket\r\n", "Connection: Upgrade\r\n")
    private static let accept = "Sec-WebSocket-Accept: KEY\r\n"
    private static let accepted = "HTTP/1.1 101 x\r\n" + upgrade + connection + accept

    @Test(
        .inLoop,
        arguments: [
            ("HTTP/1.1 200 OK\r\n" + upgrade + connection + accept, "no WebSocket: 200 OK"),
            ("HTTP/1.1 301 x\r\nLocation: /\r\nContent-Length: 0\r\n", "no WebSocket: 301"),
            ("HTTP/1.0 101 x\r\n" + upgrade + connection + accept, ""),
            ("HTTP/1.1 101 x\r\n" + upgrade + connection, "another key"),
            (
                "HTTP/1.1 101 x\r\n" + upgrade + connection
                    + accept.replacing("KEY", with: "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="),
                "another key"
            ),
            (accepted + accept, "another key"), ("HTTP/1.1 101 x\r\n" + connection + accept, "something else"),
            ("HTTP/1.1 101 x\r\nUpgrade: h2c\r\n" + connection + accept, "something else"),
            ("HTTP/1.1 101 x\r\n" + upgrade + "Connection: close\r\n" + accept, "something else"),
            (accepted + "Sec-WebSocket-Extensions: permessage-deflate\r\n", "an extension"),
            (accepted + "Sec-WebSocket-Protocol: c\r\n", "a subprotocol"),
            (accepted + "Sec-WebSocket-Protocol: a\r\nSec-WebSocket-Protocol: a\r\n", "a subprotocol"),
            ("SSH-2.0-x\r\n", "unusable"), ("HTTP/1.1 101 x\r\nA b\r\n", "unusable"),
            ("HTTP/1.1 101 x\r\nA: LONG\r\n", "65536"),
        ])
    func whatIsNoAnswerToTheHandshakeIsRefused(_ answer: String, _ reason: String) throws {
        let answer = answer.replacing("LONG", with: String(repeating: "x", count: 100_000)) + "\r\n"
        try servePeer(answer: { answer.replacing("KEY", with: webSocketAccept(Self.key($0))) })
        let error = #expect(throws: (any Error).self) {
            try hang(connectWebSocket(to: base, protocols: ["a", "b"]), timeout: .seconds(10))
        }
        expect(error.map { "\($0)".contains(reason) } == true, "\(String(describing: error))")
        expect(error is FetchError || error is HTTPError, "\(String(describing: error))")
    }

    enum Silence: CaseIterable { case closes, resets, saysNothing, saysHalf, closesInside }

    @Test(.inLoop, arguments: Silence.allCases) func aPeerWithoutAnAnswerIsGivenUp(_ silence: Silence) throws {
        let loop = EventLoop.current
        try ReactorHTTPTests.servePeer { connection -> Promise<Void> in
            switch silence {
            case .closes: .value
            case .resets: connection.read(exactly: 1).done { _ in connection.abort() }
            case .saysNothing: connection.forEachChunk { _ in .value }
            case .saysHalf: connection.write("HTTP/1.1 101 ").then { connection.forEachChunk { _ in .value } }
            case .closesInside: connection.readLine().then { _ in connection.write("HTTP/1.1 101 x\r\nA: b") }
            }
        }
        let begin = loop.now
        let error = #expect(throws: (any Error).self) { try hang(connectWebSocket(to: base), timeout: .seconds(3600)) }
        let isExpected =
            switch silence {
            case .closes, .closesInside: error as? FetchError == .endedEarly || error is SystemError
            case .resets: error is SystemError
            case .saysNothing: error as? FetchError == .timedOut(.firstByte)
            // Bytes that arrive before the request are no answer to it.
            case .saysHalf: error is HTTPError || error as? FetchError == .timedOut(.firstByte)
            }
        expect(isExpected && begin.duration(to: loop.now) <= .seconds(31), "\(error!)")
        try loop.run(until: { listener.activeConnections == 0 })
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
        try servePeer(serve, answer: answer)
        let socket = try hang(connectWebSocket(to: base), timeout: .seconds(1))
        var messages: [WebSocket.Message] = []
        try hang(socket.forEach { messages.append($0) }, timeout: .seconds(10))
        expectEqual(messages, [.text("Hello"), .bytes([7])])
    }

    /// RFC 6455, section 5.1: a server must not mask, and a client must fail the connection.
    @Test(
        .inLoop,
        arguments: [
            (WebSocketTests.frame(0x81, "a"), 1002), ([0x83, 0], 1002), ([0x81, 1, 0xFF], 1007),
            ([0x82, 126, 0x10, 0], 1009), ([0x88, 1, 3], 1002),
        ] as [([UInt8], Int)])
    func aBrokenFrameIsClosedWithItsCode(_ frame: [UInt8], _ code: Int) throws {
        var closing: Frame?
        let socket = try connectToPeer(limit: 1000) { connection in
            connection.write(frame).then { Self.frame(connection) }.get { closing = $0 }
                .then { _ in connection.forEachChunk { _ in .value } }
        }
        let error = #expect(throws: WebSocketError.self) { try hang(socket.receive(), timeout: .seconds(10)) }
        expectEqual(error.map { Int($0.code) }, code)
        try endServer()
        expectEqual(closing, Frame(first: 0x88, payload: [UInt8(code >> 8), UInt8(code & 255)]))
    }

    @Test(.inLoop) func aResetIsTheErrorOfTheConnection() throws {
        let socket = try connectToPeer { connection in after(.seconds(1)).done { connection.abort() } }
        #expect(throws: SystemError.self) { try hang(socket.receive(), timeout: .seconds(10)) }
    }

    /// By a heartbeat.
    @Test(.inLoop) func aSilentPeerIsAskedForASignOfLife() throws {
        var pings = 0
        let socket = try connectToPeer(idle: .seconds(10)) { connection in
            repeatWhile {
                Self.frame(connection).then { frame -> Promise<Bool> in
                    expectEqual(frame, Frame(first: 0x89, payload: []))
                    pings += 1
                    return pings < 3 ? connection.write([0x8A, 0]).map { true } : .value(false)
                }
            }.then { connection.forEachChunk { _ in .value } }
        }
        let begin = EventLoop.current.now
        let error = #expect(throws: WebSocketError.self) { try hang(socket.receive(), timeout: .seconds(3600)) }
        expectEqual(error?.code, 1006)
        expectEqual(begin.duration(to: EventLoop.current.now), .seconds(40))
        expectEqual(pings, 3)
    }

    @Test(.inLoop) func aPeerThatDoesNotReadIsGivenUp() throws {
        let socket = try connectToPeer(idle: .seconds(10)) { _ in after(.seconds(1000)).asPromise() }
        let large = socket.send(.bytes([UInt8](repeating: 0, count: 3 << 20)))
        large.catch(policy: .allErrors) { _ in }
        let error = #expect(throws: WebSocketError.self) { try hang(socket.receive(), timeout: .seconds(3600)) }
        expectEqual(error?.code, 1006)
    }

    @Test(.inLoop, arguments: [true, false]) func aCloseWaitsForThePeerForFiveSeconds(_ answers: Bool) throws {
        let socket = try connectToPeer { connection in
            Self.frame(connection).then { frame -> Promise<Void> in
                expectEqual(frame, Frame(first: 0x88, payload: [0x0F, 0xA0]))
                return answers ? connection.write([0x81, 1, 0x61, 0x88, 2, 0x0F, 0xA0]) : .value
            }.then { connection.forEachChunk { _ in .value } }
        }
        let receiving = socket.receive()
        let begin = EventLoop.current.now
        try hang(socket.close(code: 4000), timeout: .seconds(60))
        expectEqual(begin.duration(to: EventLoop.current.now), answers ? .zero : .seconds(5))
        expectEqual(try hang(receiving, timeout: .seconds(10)), nil)
    }

    /// The connection ends, however little a caller waits.
    @Test(.inLoop, arguments: [true, false]) func aCloseThatIsCancelledGoesOn(byItsFirstCaller: Bool) throws {
        let socket = try connectToPeer(idle: nil)
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
        let socket = try connectToPeer { connection in
            connection.write([0x81, 1, 0x61, 0x81, 1, 0x62]).then { Self.frame(connection) }
                .then { _ in connection.write([0x88, 0]) }.then { connection.forEachChunk { _ in .value } }
        }
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
        let socket = try connectToPeer { connection in
            let first: [UInt8] = how == "the server" ? [0x88, 0] : how == "this side" ? [] : [0x83, 0]
            return connection.write(first).then { Self.frame(connection) }
                .then { _ in how == "this side" ? connection.write([0x88, 0]) : .value }
                .then { connection.forEachChunk { _ in .value } }.done { hasEnded = true }
        }
        if how == "this side" { socket.close() }
        hang(after(.seconds(1)))
        expect(hasEnded)
        withExtendedLifetime(socket) {}
    }

    @Test(.inLoop) func aSocketThatNobodyRefersToAnswersAndEnds() throws {
        _ = try connectToPeer { connection in
            after(.seconds(1)).then { connection.write([0x89, 0]) }.then { Self.frame(connection) }.then { frame in
                expectEqual(frame, Frame(first: 0x8A, payload: []))
                return connection.write([0x88, 0])
            }.then { Self.frame(connection) }.then { frame -> Promise<Void> in
                expectEqual(frame, Frame(first: 0x88, payload: []))
                return connection.forEachChunk { _ in .value }
            }
        }
    }

    /// Frames with random changes, in two parts, from servers that then end, reset or wait.
    @Test(.inLoop, arguments: 0..<4) func noFrameStrandsTheClient(seed: Int) throws {
        var dice = SplitMix64(UInt64(seed))
        let frames: [[UInt8]] = [
            [0x81, 5] + Array("hello".utf8), [0x82, 2, 0, 255], [0x01, 1, 0x61], [0x80, 1, 0x62], [0x89, 1, 0x70],
            [0x8A, 0],
            [0x82, 126, 0, 200] + [UInt8](repeating: 7, count: 200), [0x88, 2, 0x03, 0xE8], [0x88, 0],
        ]
        try servePeer { connection in
            var bytes = (0...dice.below(6)).flatMap { _ in dice.pick(frames) }
            dice.spoil(&bytes, with: Array(0...255))
            let end = dice.below(3)
            return dice.sendInTwoParts(bytes, to: connection).then { () -> Promise<Void> in
                if end == 0 { connection.abort() }
                return end == 2 ? connection.forEachChunk { _ in .value } : .value
            }
        }
        var (ended, failed) = (0, 0)
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
        try servePeer(answer: { stage == .handshake ? "" : Self.accepting($0) })
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
        try servePeer()
        var options = HTTPClient.Options()
        options.connections.makeTimeout = .seconds(7)
        options.startTLS = { connection, _ in connection.read(exactly: 1).map { _ in connection } }
        let begin = EventLoop.current.now
        #expect(throws: FetchError.timedOut(.connect)) {
            try hang(HTTPClient(options).webSocket("wss" + base.dropFirst(2)), timeout: .seconds(60))
        }
        expectEqual(begin.duration(to: EventLoop.current.now), .seconds(7))
    }

    /// RFC 6455, section 4.1: also without TLS by a tunnel.
    @Test(.served, arguments: ["ws", "wss"]) func aProxyOpensATunnel(_ scheme: String) throws {
        try serveEcho()
        let proxy = try ProxyTests.SmallProxy(to: address)
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

    @Test(
        .inRealTime,
        arguments: [
            ("http://a/", "neither ws:// nor wss://"), ("ws:/a", "neither"), ("ws://", "no host"),
            ("ws://u:secret@a/", "***@a/"),
            ("ws://a b/", "'a b'"), ("ws://a..b/", "nor the name of a host"), ("wss://a/", ".startTLS = {"),
        ])
    func badAddressesAreRefused(_ address: String, _ reason: String) {
        let error = #expect(throws: FetchError.self) { try hang(client.webSocket(address), timeout: patience) }
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

    @Test(.inLoop, arguments: [WriteOverflow.drop, .abort])
    func oneThatDoesNotReadLosesMessagesOrItsConnection(_ overflow: WriteOverflow) throws {
        var members: [WebSocket] = []
        var ends: [String] = []
        let clients = try (0..<2).map { _ in
            let (client, server) = try Connection.pair()
            server.writeQueueLimit = 100_000
            let served = server.serveHTTP { request in
                Response.webSocket(request) { socket in
                    members.append(socket)
                    return socket.forEach { _ in }.tapError { ends.append("\($0)") }
                }
            }
            served.catch(policy: .allErrors) { _ in }
            _ = try hang(client.write(WebSocketTests.handshake + "\r\n").then { client.read(until: "\r\n\r\n") })
            return client
        }
        var received = [0, 0]
        func read(_ index: Int) {
            clients[index].forEachChunk { received[index] += $0.byteCount }.catch(policy: .allErrors) { _ in }
        }
        read(0)
        let message = WebSocket.Message.bytes([UInt8](repeating: 1, count: 50_000))
        func send() -> Int {
            let count = broadcast(message, to: members, overflow: overflow)
            hang(after(.milliseconds(1)))
            return count
        }
        let counts = (0..<100).map { _ in send() }
        expect(counts[0] == 2 && counts[99] == 1)
        expectEqual(ends, overflow == .abort ? ["1006: the peer does not read"] : [])
        let taken = counts.count { $0 == 2 }
        if overflow == .drop {
            // It gets later ones, complete.
            read(1)
            hang(after(.milliseconds(1)))
            expectEqual(received, [100 * 50_004, taken * 50_004])
            expectEqual(send(), 2)
            expectEqual(received[1], (taken + 1) * 50_004)
        }
        for client in clients { client.abort() }
    }
}
