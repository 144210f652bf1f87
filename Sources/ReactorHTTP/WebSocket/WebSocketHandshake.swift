import Promises
import ReactorIO

extension Response {
    /// Makes the response that opens a WebSocket (RFC 6455, section 4.2) or refuses it: 426 for a GET without a
    /// WebSocket upgrade or with another version, 400 for an invalid handshake.
    ///
    /// ```swift
    /// listener.serveHTTP { request in
    ///     Response.webSocket(request) { socket in socket.forEach { message in socket.send(message) } }
    /// }
    /// ```
    ///
    /// Browsers let any site's pages connect with the user's cookies: where that matters, check `Origin` first. The
    /// socket is closed when the promise from `body` settles: with code 1000 if fulfilled, 1011 if rejected. `onError`
    /// gets its error, except a `WebSocketError` or an error of the connection, which clients cause.
    ///
    /// When the client closes or a drain begins, `receive` and `forEach` end; after a close, `socket.peerClose` has its
    /// code and reason. If `body` never receives, its promise is cancelled instead, after the client has been answered.
    /// - Parameters:
    ///   - request: the handler's request.
    ///   - protocols: the server's subprotocols, preferred first.
    ///   - limit: a message's maximum size in bytes.
    ///   - idle: the client's silence after which a ping is sent. The connection closes after the same time again
    ///     without a frame, or if the client reads nothing for as long. `nil` for no limit.
    ///   - body: the conversation.
    public static func webSocket(
        _ request: Request, protocols: [String] = [], limit: Int = 1 << 20, idle: Duration? = .seconds(120),
        _ body: @escaping (WebSocket) throws -> Promise<Void>
    ) -> Response {
        guard request.method == .get else { return Response(.badRequest) }
        // In HTTP/1.0, `Upgrade` means nothing.
        if request.isHTTP10 || !request.headers.has("upgrade", listing: "websocket") { return upgradeRequired }
        guard request.headers.has("connection", listing: "upgrade"), let key = request.headers["sec-websocket-key"],
            isKey(key), request.headers.all("sec-websocket-key").count == 1
        else { return Response(.badRequest) }
        guard request.headers["sec-websocket-version"] == "13" else { return upgradeRequired }
        var headers: Headers = ["Sec-WebSocket-Accept": webSocketAccept(key)]
        let offered = request.headers.all("sec-websocket-protocol").joined(separator: ",").split(separator: ",")
            .map { $0.drop { $0 == " " || $0 == "\t" }.prefix { $0 != " " && $0 != "\t" } }
        let chosen = protocols.first { offered.contains(Substring($0)) }
        if let chosen { headers.append("Sec-WebSocket-Protocol", chosen) }
        let content = Content.upgrade("websocket") { connection in
            WebSocket(connection, limit: limit, idle: idle, subprotocol: chosen).converse(body)
        }
        return Response(Status(101), nil, headers, content)
    }

    /// RFC 9110, section 15.5.22.
    private static var upgradeRequired: Response {
        Response(
            "This address speaks WebSocket\n", status: Status(426),
            headers: ["Upgrade": "websocket", "Sec-WebSocket-Version": "13"])
    }

    /// True when `text` is the Base64 of 16 bytes.
    private static func isKey(_ text: String) -> Bool {
        text.utf8.count == 24 && text.hasSuffix("==")
            && text.utf8.dropLast(2).allSatisfy { base64Digits.contains($0) }
    }
}

/// Returns the answer to a key: RFC 6455, section 1.3.
func webSocketAccept(_ key: String) -> String {
    base64(sha1(Array((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8)))
}

/// RFC 3174. Only proves that the server speaks WebSocket; protects nothing.
private func sha1(_ message: [UInt8]) -> [UInt8] {
    var bytes = message + [0x80]
    while bytes.count % 64 != 56 { bytes.append(0) }
    let length = UInt64(message.count * 8)
    for place in 0..<8 { bytes.append(UInt8(truncatingIfNeeded: length >> UInt64(56 - 8 * place))) }
    func rotated(_ word: UInt32, _ count: UInt32) -> UInt32 { word << count | word >> (32 - count) }
    var hash: [UInt32] = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476, 0xC3D2_E1F0]
    for start in stride(from: 0, to: bytes.count, by: 64) {
        var words = (0..<16).map { word in
            (0..<4).reduce(UInt32(0)) { $0 << 8 | UInt32(bytes[start + 4 * word + $1]) }
        }
        for index in 16..<80 {
            words.append(rotated(words[index - 3] ^ words[index - 8] ^ words[index - 14] ^ words[index - 16], 1))
        }
        var (a, b, c, d, e) = (hash[0], hash[1], hash[2], hash[3], hash[4])
        for (index, word) in words.enumerated() {
            let (function, constant): (UInt32, UInt32) =
                switch index {
                case 0..<20: (b & c | ~b & d, 0x5A82_7999)
                case 20..<40: (b ^ c ^ d, 0x6ED9_EBA1)
                case 40..<60: (b & c | b & d | c & d, 0x8F1B_BCDC)
                default: (b ^ c ^ d, 0xCA62_C1D6)
                }
            (a, b, c, d, e) = (rotated(a, 5) &+ function &+ e &+ constant &+ word, a, rotated(b, 30), c, d)
        }
        for (index, word) in [a, b, c, d, e].enumerated() { hash[index] &+= word }
    }
    return hash.flatMap { word in (0..<4).map { UInt8(truncatingIfNeeded: word >> UInt32(24 - 8 * $0)) } }
}
