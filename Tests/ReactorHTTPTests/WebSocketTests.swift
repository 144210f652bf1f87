struct WebSocketTests {
    static let handshake =
        "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\n"
        + "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"

    /// A frame as a client sends it.
    static func frame(_ first: UInt8, _ payload: [UInt8], length: [UInt8]? = nil) -> [UInt8] {
        let mask: [UInt8] = [0x37, 0xFA, 0x21, 0x3D]
        let count = payload.count
        let length = length ?? (count < 126 ? [UInt8(count)] : [126, UInt8(count >> 8), UInt8(count & 255)])
        return [first, length[0] | 0x80] + length.dropFirst() + mask + payload.enumerated().map { $1 ^ mask[$0 & 3] }
    }

    static func frame(_ first: UInt8, _ text: String) -> [UInt8] { frame(first, Array(text.utf8)) }

    /// The answer of an echoing server to frames that arrive with the handshake, after the head.
    private func answers(
        _ frames: [UInt8], fields: String = "", limit: Int = 1000, _ check: (String, [UInt8]) -> Void
    ) throws {
        let handler = { (request: Request) -> Answer in
            .now(
                .webSocket(request, protocols: ["b", "a"], limit: limit) { socket in socket.forEach { socket.send($0) }
                }
            )
        }
        try withServer(handler) { address, _ in
            let client = try hang(connect(to: address), timeout: patience)
            let head = Array((Self.handshake + fields + "\r\n").utf8)
            try hang(client.write(head + frames).then { client.shutdownWrite() }, timeout: patience)
            let all = try hang(client.receiveAll(), timeout: patience)
            client.close()
            let end = try #require(all.indices.first { all[$0...].starts(with: [13, 10, 13, 10]) })
            check(String(decoding: all[..<end], as: UTF8.self), Array(all[(end + 4)...]))
        }
    }

    /// RFC 6455, section 1.3, has this key and its answer.
    @Test func theHandshakeIsAnswered() throws {
        try answers(Self.frame(0x88, []), fields: "Sec-WebSocket-Protocol: a, c\r\n") { head, rest in
            expect(head.hasPrefix("HTTP/1.1 101 Switching Protocols\r\n"))
            expect(head.contains("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"))
            expect(head.contains("Sec-WebSocket-Protocol: a\r\n"))
            expectEqual(rest, [0x88, 0])
        }
    }

    struct Case: Sendable {
        let section: String
        let frames: [UInt8]
        let answer: [UInt8]
    }

    static let closed = frame(0x88, [0x03, 0xE8])
    static func refused(_ code: UInt16) -> [UInt8] { [0x88, 2, UInt8(code >> 8), UInt8(code & 255)] }
    static let ended: [UInt8] = [0x88, 2, 0x03, 0xE8]

    @Test(arguments: [
        Case(
            section: "5.6 text", frames: frame(0x81, "Hello") + closed, answer: [0x81, 5] + Array("Hello".utf8) + ended),
        Case(section: "5.6 bytes", frames: frame(0x82, [0, 255]) + closed, answer: [0x82, 2, 0, 255] + ended),
        Case(
            section: "5.3 masks of a word and more", frames: frame(0x82, Array(0...18)) + closed,
            answer: [0x82, 19] + Array(0...18) + ended),
        Case(
            section: "5.3 masks of a text", frames: frame(0x81, "twenty-one bytes: né") + closed,
            answer: [0x81, 21] + Array("twenty-one bytes: né".utf8) + ended),
        Case(
            section: "5.2 longer", frames: frame(0x82, [UInt8](repeating: 7, count: 200)) + closed,
            answer: [0x82, 126, 0, 200] + [UInt8](repeating: 7, count: 200) + ended),
        Case(
            section: "5.4 fragments around a ping",
            frames: frame(0x01, "Hel") + frame(0x89, "p") + frame(0x00, "l") + frame(0x80, "o") + closed,
            answer: [0x8A, 1, 0x70, 0x81, 5] + Array("Hello".utf8) + ended),
        Case(section: "5.5.3 pong", frames: frame(0x8A, "x") + closed, answer: ended),
        Case(section: "5.1 no mask", frames: [0x81, 1, 0x61], answer: refused(1002)),
        Case(section: "5.2 reserved bit", frames: frame(0xC1, "a"), answer: refused(1002)),
        Case(section: "5.2 reserved opcode", frames: frame(0x83, "a"), answer: refused(1002)),
        Case(
            section: "5.2 length that is not minimal", frames: frame(0x82, [1], length: [126, 0, 1]),
            answer: refused(1002)),
        Case(section: "5.4 fragment of nothing", frames: frame(0x80, "a"), answer: refused(1002)),
        Case(section: "5.4 message in a message", frames: frame(0x01, "a") + frame(0x81, "b"), answer: refused(1002)),
        Case(section: "5.5 fragmented ping", frames: frame(0x09, "a"), answer: refused(1002)),
        Case(section: "5.5 long ping", frames: frame(0x89, [UInt8](repeating: 0, count: 126)), answer: refused(1002)),
        Case(section: "5.5.1 half a code", frames: frame(0x88, [3]), answer: refused(1002)),
        Case(section: "7.4 reserved code", frames: frame(0x88, [0x03, 0xED]), answer: refused(1002)),
        Case(section: "8.1 no UTF-8", frames: frame(0x81, [0xC3, 0x28]), answer: refused(1007)),
        Case(
            section: "8.1 UTF-8 across fragments", frames: frame(0x01, [0xC3]) + frame(0x80, [0xA9]) + closed,
            answer: [0x81, 2, 0xC3, 0xA9] + ended),
        Case(section: "7.4.1 too long", frames: frame(0x82, [UInt8](repeating: 0, count: 1001)), answer: refused(1009)),
        Case(
            section: "7.4.1 too long in fragments",
            frames: frame(0x02, [UInt8](repeating: 0, count: 900)) + frame(0x80, [UInt8](repeating: 0, count: 120)),
            answer: refused(1009)),
        Case(
            section: "7.4.1 too long to arrive", frames: [0x82, 0xFF, 0x7F, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4],
            answer: refused(1009)),
    ])
    func framesAreAnsweredOrRefused(_ one: Case) throws {
        try answers(one.frames) { _, rest in expectEqual(rest, one.answer, "\(one.section)") }
    }

    /// A message whose length is in the second byte.
    @Test(arguments: [0x81, 0x82] as [UInt8]) func aShortMessageMayBeTooLong(first: UInt8) throws {
        let hello = Self.frame(first, "Hello") + Self.closed
        try answers(hello, limit: 5) { _, rest in expectEqual(rest, [first, 5] + Array("Hello".utf8) + Self.ended) }
        try answers(hello, limit: 4) { _, rest in expectEqual(rest, Self.refused(1009)) }
    }

    @Test(arguments: [
        ("Sec-WebSocket-Version: 13", "Sec-WebSocket-Version: 8", 426), ("Upgrade: WebSocket", "Upgrade: h2c", 426),
        ("Connection: keep-alive, Upgrade", "Connection: keep-alive", 400), ("GET", "POST", 400),
        ("dGhlIHNhbXBsZSBub25jZQ==", "short==", 400),
    ])
    func whatIsNoHandshakeIsRefused(_ part: String, _ other: String, _ code: Int) throws {
        let parts = Self.handshake.split(separator: part, maxSplits: 1, omittingEmptySubsequences: false)
        let handler = { (request: Request) in Answer.now(.webSocket(request) { _ in .value }) }
        try withServer(handler) { address, _ in try expect([code], address, parts[0] + other + parts[1] + "\r\n") }
    }

    /// RFC 9110, section 15.5.22: the answer names what to upgrade to.
    @Test(.served, arguments: ["GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "GET / HTTP/1.0\r\n\r\n"])
    func aPlainRequestIsToldToUpgrade(_ request: String) throws {
        try serve { request in Answer.now(.webSocket(request) { _ in .value }) }
        let answer = try conversation(address, request)
        expectEqual(statuses(answer), [426])
        for line in ["Upgrade: websocket", "Sec-WebSocket-Version: 13", "Connection: upgrade, close"] {
            expect(answer.contains("\r\n\(line)\r\n"), "\(answer)")
        }
        expect(answer.hasSuffix("\r\n\r\nThis address speaks WebSocket\n"))
    }

    /// Connects, sends the handshake, and calls `body` with the client, after the head of the answer.
    private func withSocket(
        _ serve: @escaping (WebSocket) throws -> Promise<Void>, _ body: (Connection, Listener) throws -> Void
    ) throws {
        try withServer({ request in .now(.webSocket(request) { try serve($0) }) }) { address, listener in
            let client = try hang(connect(to: address), timeout: patience)
            defer { client.close() }
            let head = try hang(
                client.write(Self.handshake + "\r\n").then { client.read(until: "\r\n\r\n") }, timeout: patience)
            expect(String(decoding: head ?? [], as: UTF8.self).hasPrefix("HTTP/1.1 101 "))
            try body(client, listener)
        }
    }

    private func rest(of client: Connection) throws -> [UInt8] {
        try hang(client.receiveAll(), timeout: patience)
    }

    @Test func nothingFollowsACloseFrame() throws {
        try withSocket({ $0.send("bye").then { .value } }) { client, _ in
            // The server has closed, and is sent a ping before the client does the same.
            _ = try hang(client.read(exactly: 9), timeout: patience)
            try hang(client.write(Self.frame(0x89, "?") + Self.frame(0x81, "late") + Self.closed), timeout: patience)
            expectEqual(try rest(of: client), [])
        }
    }

    @Test func aCloseWaitsForTheClientBehindAReceiveThatWaits() throws {
        var socket: WebSocket?
        var isClosed = false
        var outcome: WebSocket.Message?? = .none
        let serve = { (made: WebSocket) -> Promise<Void> in
            socket = made
            return made.receive().done { outcome = .some($0) }
        }
        try withSocket(serve) { client, _ in
            try EventLoop.current.run(until: { socket != nil })
            socket?.close(code: 4000).done { isClosed = true }.cauterize()
            let frame = try hang(client.read(exactly: 4), timeout: patience)
            expectEqual(frame, [0x88, 2, 0x0F, 0xA0])
            expect(!isClosed)
            try hang(client.write(Self.frame(0x88, [0x0F, 0xA0])), timeout: patience)
            let rest = try rest(of: client)
            expect(rest == [] && isClosed)
        }
        // A `nil` message, not the error of an interrupted read.
        expectEqual(outcome, .some(nil))
    }

    @Test(.inLoop) func aClientThatDoesNotCloseIsLeft() throws {
        let client = try serveClient { .now(.webSocket($0) { _ in .value }) }
        try hang(client.write(Self.handshake + "\r\n"))
        let answer = try readToEnd(client)
        expect(answer.hasPrefix("HTTP/1.1 101 "))
    }

    @Test func messagesMayBeTakenWithoutAPromiseForEach() throws {
        var messages: [WebSocket.Message] = []
        let serve = { (socket: WebSocket) -> Promise<Void> in
            socket.forEach { message in
                messages.append(message)
                if messages.count == 2 { throw StopReading() }
            }
        }
        try withSocket(serve) { client, _ in
            try hang(client.write(Self.frame(0x81, "a") + Self.frame(0x81, "b")), timeout: patience)
            expectEqual(try hang(client.read(exactly: 4), timeout: patience), [0x88, 2, 0x03, 0xE8])
        }
        expectEqual(messages, [.text("a"), .text("b")])
    }

    @Test(.inLoop) func aSilentClientIsAskedForASignOfLife() throws {
        let client = try serveClient { .now(.webSocket($0) { socket in socket.forEach { socket.send($0) } }) }
        _ = try hang(client.write(Self.handshake + "\r\n").then { client.read(until: "\r\n\r\n") })
        for _ in 0..<3 {
            expectEqual(try hang(client.read(exactly: 2), timeout: .seconds(121)), [0x89, 0])
            try hang(client.write(Self.frame(0x8A, [])))
        }
        expectEqual(try hang(client.receiveAll(), timeout: .seconds(250)), [0x89, 0] + Self.refused(1011))
    }

    /// Whether it sends or not.
    @Test(.inLoop, arguments: [false, true]) func aClientThatDoesNotReadIsGivenUp(sends: Bool) throws {
        let large = [UInt8](repeating: 0, count: 2 << 20)
        let serve = { (socket: WebSocket) -> Promise<Void> in
            let sent = socket.send(.bytes(large))
            if !sends { return sent }
            sent.catch(policy: .allErrors) { _ in }
            return socket.forEach { _ in }
        }
        let client = try serveClient { .now(.webSocket($0, serve)) }
        _ = try hang(client.write(Self.handshake + "\r\n"))
        for _ in 0..<10 {
            try? hang(after(.seconds(30)).then { sends ? client.write(Self.frame(0x8A, [])) : .value })
        }
        // The bytes in the kernel's buffers, not the whole message.
        var count = 0
        try? hang(client.forEachChunk { count += $0.byteCount }, timeout: .seconds(10))
        expect(count < large.count)
    }

    /// The loop over messages does not wait for the close, which waits for a frame of the client.
    @Test(.inLoop, arguments: [true, false]) func theBodyOfALoopMayClose(_ atOnce: Bool) throws {
        let serve = { (socket: WebSocket) -> Promise<Void> in
            socket.forEach { _ in atOnce ? socket.close() : after(.milliseconds(1)).then { socket.close() } }
        }
        let client = try serveClient { .now(.webSocket($0, serve)) }
        let frames = Self.frame(0x81, "bye") + Self.frame(0x81, "late") + Self.closed
        try hang(client.write(Array((Self.handshake + "\r\n").utf8) + frames))
        // The server waits for five seconds, if it gets no close.
        let all = try hang(client.receiveAll(), timeout: .seconds(4))
        expectEqual(all.suffix(4), Self.ended)
    }

    @Test func aCodeThatNoSideMaySendIsReplaced() throws {
        try withSocket({ $0.close(code: 1006) }) { client, _ in
            expectEqual(try hang(client.read(exactly: 4), timeout: patience), Self.ended)
        }
    }
}
