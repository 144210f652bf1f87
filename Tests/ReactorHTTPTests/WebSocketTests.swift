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

    /// The answer of an echoing server to frames that arrive with the handshake: the head, and what follows it.
    private func answers(_ frames: [UInt8], fields: String = "", limit: Int = 1000) throws -> (String, [UInt8]) {
        try serve { request in
            .now(
                .webSocket(request, protocols: ["b", "a"], limit: limit) { socket in socket.forEach { socket.send($0) }
                })
        }
        let client = try connected()
        let head = Array((Self.handshake + fields + "\r\n").utf8)
        let answer = client.write(head + frames).then { client.shutdownWrite() }.then { client.read(until: "\r\n\r\n") }
        let read = try #require(try hang(answer, timeout: patience))
        return (String(decoding: read, as: UTF8.self) + "\r\n", try hang(client.receiveAll(), timeout: patience))
    }

    /// RFC 6455, section 1.3, has this key and its answer.
    @Test(.served, arguments: ["a, c", "c,\ta", "c ,\t a\t ,d", "\tc\r\nSec-WebSocket-Protocol: x,a"])
    func theHandshakeIsAnswered(_ protocols: String) throws {
        let (head, rest) = try answers(Self.frame(0x88, []), fields: "Sec-WebSocket-Protocol: \(protocols)\r\n")
        expect(head.hasPrefix("HTTP/1.1 101 Switching Protocols\r\n"))
        expect(head.contains("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"))
        expect(head.contains("Sec-WebSocket-Protocol: a\r\n"))
        expectEqual(rest, [0x88, 0])
    }

    static let closed = frame(0x88, [0x03, 0xE8])
    static func refused(_ code: UInt16) -> [UInt8] { [0x88, 2, UInt8(code >> 8), UInt8(code & 255)] }
    static let ended: [UInt8] = [0x88, 2, 0x03, 0xE8]

    private static let long = [UInt8](repeating: 7, count: 200)
    private static let text = "twenty-one bytes: né"

    @Test(
        .served,
        arguments: [
            ("5.6 text", frame(0x81, "Hello") + closed, [0x81, 5] + Array("Hello".utf8) + ended),
            ("5.6 bytes", frame(0x82, [0, 255]) + closed, [0x82, 2, 0, 255] + ended),
            ("5.3 masks of words", frame(0x82, Array(0...18)) + closed, [0x82, 19] + Array(0...18) + ended),
            ("5.3 masks of a text", frame(0x81, text) + closed, [0x81, 21] + Array(text.utf8) + ended),
            ("5.2 longer", frame(0x82, long) + closed, [0x82, 126, 0, 200] + long + ended),
            (
                "5.4 fragments around a ping",
                frame(0x01, "Hel") + frame(0x89, "p") + frame(0x00, "l") + frame(0x80, "o") + closed,
                [0x8A, 1, 0x70, 0x81, 5] + Array("Hello".utf8) + ended
            ),
            ("5.5.3 pong", frame(0x8A, "x") + closed, ended), ("5.1 no mask", [0x81, 1, 0x61], refused(1002)),
            ("5.2 reserved bit", frame(0xC1, "a"), refused(1002)),
            ("5.2 reserved opcode", frame(0x83, "a"), refused(1002)),
            ("5.2 length that is not minimal", frame(0x82, [1], length: [126, 0, 1]), refused(1002)),
            ("5.4 fragment of nothing", frame(0x80, "a"), refused(1002)),
            ("5.4 message in a message", frame(0x01, "a") + frame(0x81, "b"), refused(1002)),
            ("5.5 fragmented ping", frame(0x09, "a"), refused(1002)),
            ("5.5 long ping", frame(0x89, long), refused(1002)),
            ("5.5.1 half a code", frame(0x88, [3]), refused(1002)),
            ("7.4 reserved code", frame(0x88, [0x03, 0xED]), refused(1002)),
            ("8.1 no UTF-8", frame(0x81, [0xC3, 0x28]), refused(1007)),
            (
                "8.1 UTF-8 across fragments", frame(0x01, [0xC3]) + frame(0x80, [0xA9]) + closed,
                [0x81, 2, 0xC3, 0xA9] + ended
            ),
            ("7.4.1 too long", frame(0x82, [UInt8](repeating: 0, count: 1001)), refused(1009)),
            (
                "7.4.1 too long in fragments",
                frame(0x02, [UInt8](repeating: 0, count: 900)) + frame(0x80, [UInt8](repeating: 0, count: 120)),
                refused(1009)
            ),
            ("7.4.1 too long to arrive", [0x82, 0xFF, 0x7F, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4], refused(1009)),
        ] as [(String, [UInt8], [UInt8])])
    func framesAreAnsweredOrRefused(_ section: String, _ frames: [UInt8], _ answer: [UInt8]) throws {
        expectEqual(try answers(frames).1, answer, section)
    }

    /// A message whose length is in the second byte.
    @Test(.served, arguments: [0x81, 0x82] as [UInt8]) func aShortMessageMayBeTooLong(first: UInt8) throws {
        let hello = Self.frame(first, "Hello") + Self.closed
        expectEqual(try answers(hello, limit: 5).1, [first, 5] + Array("Hello".utf8) + Self.ended)
        expectEqual(try answers(hello, limit: 4).1, Self.refused(1009))
    }

    @Test(
        .served,
        arguments: [
            ("Sec-WebSocket-Version: 13", "Sec-WebSocket-Version: 8", 426), ("Upgrade: WebSocket", "Upgrade: h2c", 426),
            ("Connection: keep-alive, Upgrade", "Connection: keep-alive", 400), ("GET", "POST", 400),
            ("dGhlIHNhbXBsZSBub25jZQ==", "short==", 400),
        ])
    func whatIsNoHandshakeIsRefused(_ part: String, _ other: String, _ code: Int) throws {
        try serve { request in .now(.webSocket(request) { _ in .value }) }
        try expect([code], Self.handshake.replacing(part, with: other, maxReplacements: 1) + "\r\n")
    }

    /// RFC 9110, section 15.5.22: the answer names what to upgrade to.
    @Test(.served, arguments: ["GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "GET / HTTP/1.0\r\n\r\n"])
    func aPlainRequestIsToldToUpgrade(_ request: String) throws {
        try serve { request in Answer.now(.webSocket(request) { _ in .value }) }
        let answer = try conversation(request)
        expectEqual(statuses(answer), [426])
        for line in ["Upgrade: websocket", "Sec-WebSocket-Version: 13", "Connection: upgrade, close"] {
            expect(answer.contains("\r\n\(line)\r\n"), "\(answer)")
        }
        expect(answer.hasSuffix("\r\n\r\nThis address speaks WebSocket\n"))
    }

    @Test(.inLoop) func nothingFollowsACloseFrame() throws {
        let client = try connectedSocket { $0.send("bye").then { .value } }
        // The server has closed, and is sent a ping before the client does the same.
        _ = try hang(client.read(exactly: 9))
        try hang(client.write(Self.frame(0x89, "?") + Self.frame(0x81, "late") + Self.closed))
        expectEqual(try hang(client.receiveAll()), [])
    }

    @Test(.inLoop) func aClientThatDoesNotCloseIsLeft() throws {
        let client = try connectedSocket { _ in .value }
        expectEqual(try hang(client.receiveAll(), timeout: .seconds(6)), Self.ended)
    }

    @Test(.inLoop) func messagesMayBeTakenWithoutAPromiseForEach() throws {
        var messages: [WebSocket.Message] = []
        let client = try connectedSocket { socket in
            socket.forEach { message in
                messages.append(message)
                if messages.count == 2 { throw StopReading() }
            }
        }
        try hang(client.write(Self.frame(0x81, "a") + Self.frame(0x81, "b")))
        expectEqual(try hang(client.read(exactly: 4), timeout: .seconds(1)), Self.ended)
        expectEqual(messages, [.text("a"), .text("b")])
    }

    @Test(.inLoop) func aSilentClientIsAskedForASignOfLife() throws {
        let client = try connectedSocket { socket in socket.forEach { socket.send($0) } }
        for _ in 0..<3 {
            expectEqual(try hang(client.read(exactly: 2), timeout: .seconds(121)), [0x89, 0])
            try hang(client.write(Self.frame(0x8A, [])))
        }
        expectEqual(try hang(client.receiveAll(), timeout: .seconds(250)), [0x89, 0] + Self.refused(1011))
    }

    enum Deaf: CaseIterable { case silent, sends, hasManyMessages }

    /// Which is no error of the service.
    @Test(.inLoop, arguments: Deaf.allCases) func aClientThatDoesNotReadIsGivenUp(_ client: Deaf) throws {
        let large = [UInt8](repeating: 0, count: 2 << 20)
        let connection = try connectedSocket { socket in
            let sent = socket.send(.bytes(large))
            if client == .silent { return sent }
            if client == .hasManyMessages { for _ in 0..<3 { socket.send(.bytes(large)) } }
            sent.catch(policy: .allErrors) { _ in }
            return socket.forEach { _ in }
        }
        for _ in 0..<10 {
            try? hang(after(.seconds(30)).then { client == .sends ? connection.write(Self.frame(0x8A, [])) : .value })
        }
        // The bytes in the kernel's buffers, not the whole message.
        var count = 0
        try? hang(connection.forEachChunk { count += $0.byteCount }, timeout: .seconds(10))
        expect(count < large.count)
        try hang(served, timeout: .seconds(1))
        expect(errors.isEmpty, "\(errors)")
    }

    /// The loop over messages does not wait for the close, which waits for a frame of the client.
    @Test(.inLoop, arguments: [true, false]) func theBodyOfALoopMayClose(_ atOnce: Bool) throws {
        let client = try connectedSocket { socket in
            socket.forEach { _ in atOnce ? socket.close() : after(.milliseconds(1)).then { socket.close() } }
        }
        try hang(client.write(Self.frame(0x81, "bye") + Self.frame(0x81, "late") + Self.closed))
        // The server waits for five seconds, if it gets no close.
        expectEqual(try hang(client.receiveAll(), timeout: .seconds(4)), Self.ended)
    }

    @Test(.inLoop) func aCodeThatNoSideMaySendIsReplaced() throws {
        let client = try connectedSocket { $0.close(code: 1006) }
        expectEqual(try hang(client.read(exactly: 4)), Self.ended)
    }
}

/// A client of a server of sockets, on a virtual clock, after the handshake.
func connectedSocket(
    limit: Int = 1 << 20, _ body: @escaping (WebSocket) throws -> Promise<Void>
) throws -> Connection {
    let client = try serveClient { .now(.webSocket($0, limit: limit, body)) }
    let head = client.write(WebSocketTests.handshake + "\r\n").then { client.read(until: "\r\n\r\n") }
    expect(String(decoding: try hang(head) ?? [], as: UTF8.self).hasPrefix("HTTP/1.1 101 "))
    return client
}
