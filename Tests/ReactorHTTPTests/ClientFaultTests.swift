@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// Faults of clients are no errors of the service, however frequent; other faults are.
@Suite(.serialized) struct ClientFaultTests {
    private static let get = ServerTests.get
    static let post = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc"
    private static let upgrade = "GET /upgrade HTTP/1.1\r\nHost: x\r\n\r\n"

    /// The handler uses the body and writes much.
    @Test(
        .served,
        arguments: [
            ("half a head", "GET / HTTP/1.1\r\nHo"), ("no HTTP", "\u{16}\u{3}\u{1}\r\n"), ("half a body", post),
            ("half a body that is sent back", "PUT" + post.dropFirst(4)),
            ("half a body that nobody reads", "PATCH" + post.dropFirst(4)),
            ("a response that nobody reads", "GET /large HTTP/1.1\r\nHost: x\r\n\r\n"),
            ("a WebSocket", WebSocketTests.handshake + "\r\n"),
            ("a WebSocket, and no frame", WebSocketTests.handshake + "\r\n\u{7F}\u{7F}"),
            ("another protocol, half a frame", upgrade + "\u{5}abc"),
            ("another protocol, too long a frame", upgrade + "\u{7F}abc"),
        ] as [(String, String)], [false, true])
    func clientsCauseNoErrorOfTheService(_ fault: (description: String, sent: String), resets: Bool) throws {
        let large = [UInt8](repeating: 0, count: 1 << 20)
        try serve { request in
            let body = request.body
            switch (request.method, request.path) {
            // It is never whole.
            case (.post, _): return .later(body.bytes().map { _ in throw NoDatabase() })
            case (.put, _): return .now(.stream { output in body.forEach { output.write($0) } })
            case (.get, "/upgrade"):
                return .now(
                    .upgrade(to: "x") { connection in
                        connection.forEachFrame(LengthPrefixDecoder<UInt8>(limit: 9)) { frame, _ in
                            connection.write(frame)
                        }
                    })
            case (.get, "/large"): return .now(.stream { output in forEach(0..<3) { _ in output.write(large) } })
            case (.get, _): return .now(.webSocket(request) { socket in socket.forEach { socket.send($0) } })
            default: return .now(Response(""))
            }
        }
        let client = try connected()
        try hang(client.write(fault.sent), timeout: patience)
        if resets {
            // After the bytes, which have to arrive.
            try EventLoop.current.run(until: { listener.activeConnections != 0 })
            client.abort()
        } else {
            try hang(client.shutdownWrite().then { client.forEachChunk { _ in .value } }, timeout: patience)
        }
        try EventLoop.current.run(until: { listener.activeConnections == 0 })
        expectEqual(errors.map { "\($0)" }, [])
    }

    struct NoDatabase: Error {}

    /// An error of a database, for instance, whose connection is another one.
    @Test(
        .served,
        arguments: [
            SystemError(.receive, ECONNRESET), StreamError.endedEarly(expected: .frame, got: 1),
            StreamError.timedOut(got: 0),
            BodyError.endedEarly, BodyError.unreadable, PeerGone.failed(SystemError(.receive, ECONNRESET)),
            PeerGone.ended, NoDatabase(),
        ] as [any Error & Sendable]) func theErrorsOfOthersAreTheServices(_ error: any Error & Sendable) throws
    {
        try serve { request in
            if request.path == "/upgrade" { return .now(.upgrade(to: "x") { _ in Promise(error: error) }) }
            if request.path == "/stream" { return .now(.stream { _ in Promise(error: error) }) }
            var body = request.body.bytes()
            if request.path == "/chunks" { body = body.recover { _ in .value([]) } }
            return .later(body.then { _ in Promise<Response>(error: error) })
        }
        // Without a body, with a whole one, in a stream; another kind also behind one that has failed, and behind an upgrade.
        let chunks = "POST /chunks HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nno length\r\n"
        var sent = [(Self.get, 500), (Self.post + "defghi", 500), ("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n", 500)]
        if error is NoDatabase { sent += [(chunks, 500), (Self.upgrade, 101)] }
        for (request, status) in sent {
            // It still reads.
            let client = try connected()
            let line = try hang(client.write(request).then { client.readLine() }, timeout: patience)
            expect(line?.hasPrefix("HTTP/1.1 \(status) ") == true, "\(line ?? "-")")
        }
        try endServer()
        expectEqual(errors.map { "\($0)" }, sent.map { _ in "\(error)" })
    }

    /// Another connection fails with the same error as the client's, which was reset.
    @Test(.served, arguments: [true, false]) func anErrorOfTheSameKindIsNotThatOfTheClient(_ isStream: Bool) throws {
        var isCalled = false
        try serve { request in
            let connection = request.connection!
            isCalled = true
            let failed = connection.peerGone().then { _ in Promise<Response>(error: SystemError(.receive, ECONNRESET)) }
            return isStream ? .now(.stream { _ in failed.asVoid() }) : .later(failed)
        }
        let client = try connected()
        try hang(client.write(Self.get), timeout: patience)
        try EventLoop.current.run(until: { isCalled })
        client.abort()
        try endServer()
        expectEqual(errors.map { "\($0)" }, ["\(SystemError(.receive, ECONNRESET))"])
    }

    /// For a layer such as TLS, whose clients end without an end record, or send invalid records. In its handshake the
    /// certificate may be the cause: `onError` gets the error, and limits its lines.
    @Test(
        .served,
        arguments: [
            ("", false), ("GET / HTTP/1.1\r\nHo", false), (get, false), (post, false),
            ("PUT" + post.dropFirst(4), false), ("!", false), ("!", true),
        ] as [(String, Bool)])
    func ofAFilterOnlyAHandshakeIsAnErrorOfTheService(_ sent: String, _ isHandshake: Bool) throws {
        struct Broken: Error {}
        struct Filter: ConnectionFilter {
            let isReady: Bool
            mutating func begin(_ output: inout FilterOutput) { if isReady { output.becomeReady() } }
            mutating func receive(_ bytes: RawSpan, _ output: inout FilterOutput) throws {
                if bytes.byteCount > 0, bytes.unsafeLoad(as: UInt8.self) == UInt8(ascii: "!") { throw Broken() }
                output.deliver(bytes)
            }
            mutating func write(_ bytes: RawSpan, _ output: inout FilterOutput) { output.send(bytes) }
        }
        var serving = ServeOptions()
        serving.prepare = { $0.filter(Filter(isReady: !isHandshake)) }
        try serve(limits: logging(), serving: serving) { request in
            let body = request.body
            if request.method == .put { return .now(.stream { output in body.forEach { output.write($0) } }) }
            return .later(body.text().map { Response($0) })
        }
        let client = try connected()
        try hang(client.write(sent).then { client.shutdownWrite() }, timeout: patience)
        try? hang(client.forEachChunk { _ in .value }, timeout: patience)
        try endServer()
        expectEqual(errors.map { "\($0)" }, isHandshake ? ["\(Broken())"] : [])
        expect(logged.count == (sent.contains("\r\n\r\n") ? 1 : 0), "\(logged)")
    }

    // MARK: Writes that are ignored

    /// The reports of unhandled rejections on this thread while `body` runs.
    private func unhandled(_ body: () throws -> Void) rethrows -> [String] {
        let thread = pthread_self()
        let recorder = LogRecorder {
            $0.kind == .unhandledRejection && pthread_equal(thread, pthread_self()) != 0
        }
        defer { recorder.stop() }
        try body()
        return recorder.lines
    }

    /// A program that sends at its own pace, such as prices, learns from `forEach` that the client has left.
    @Test(.served, arguments: [true, false]) func ignoredWritesReportNothing(_ isSocket: Bool) throws {
        let large = [UInt8](repeating: 0, count: 1 << 20)
        var failures = 0
        try serve { request in
            if isSocket {
                return .now(
                    .webSocket(request) { socket in
                        for _ in 0..<3 { socket.send(.bytes(large)) }
                        return socket.forEach { _ in }.recover(policy: .allErrors) { _ in
                            failures += 1
                            for _ in 0..<3 { socket.send("gone") }
                            return socket.close().done { for _ in 0..<3 { socket.send("closed") } }
                        }
                    })
            }
            let connection = request.connection!
            return .now(
                .stream { output in
                    for _ in 0..<3 { output.write(large) }
                    return connection.peerGone().asPromise().done { _ in
                        failures += 1
                        for _ in 0..<3 { output.write("gone") }
                    }
                })
        }
        let lines = try unhandled {
            let client = try connected()
            let request = isSocket ? WebSocketTests.handshake + "\r\n" : Self.get
            _ = try hang(client.write(request).then { client.read(exactly: 1000) }, timeout: patience)
            client.abort()
            try EventLoop.current.run(until: { failures != 0 })
            try endServer()
        }
        expectEqual(lines, [])
    }

    /// The queue is full, and the refused part is missing in the middle: the client must not take the rest for the
    /// whole.
    @Test(.inLoop, arguments: [nil, 8 << 20]) func aStreamThatHasLostAPartIsNotEndedAsAWholeOne(_ length: Int?) throws {
        let part = [UInt8](repeating: 0x2E, count: 1 << 20)
        let client = try serveClient { _ in
            .now(
                .stream(length: length) { output in
                    for _ in 0..<8 { output.write(part) }
                    return after(.seconds(1)).done { _ in }
                })
        }
        try hang(client.write(Self.get))
        var all: [UInt8] = []
        #expect(throws: Never.self) { try hang(toTheEnd(client) { all += [UInt8]($0) }, timeout: .seconds(30)) }
        expect(all.count < 8 << 20 && all.suffix(5) != Array("0\r\n\r\n".utf8)[...])
    }

    /// Nothing is missing in the middle, nor at the beginning, with the head.
    @Test(.inLoop, arguments: [nil, (1 << 20) + 10]) func aPartIsSentThoughItsPromiseIsCancelled(_ length: Int?) throws
    {
        var requests = 0
        let large = [UInt8](repeating: 0x2E, count: 1 << 20)
        let client = try serveClient { _ in
            requests += 1
            let isFirst = requests == 1
            return .now(
                .stream(length: isFirst ? length : 5) { output in
                    if isFirst { output.write(large) }
                    for text in isFirst ? ["first", "other"] : ["third"] {
                        let part = output.write(text)
                        part.cancel()
                    }
                    return .value
                })
        }
        try hang(client.write(Self.get + Self.get).then { client.shutdownWrite() })
        hang(after(.seconds(1)))
        var text = try readToEnd(client)
        for framing in ["5\r\n", "\r\n"] where length == nil { text = text.replacing(framing, with: "") }
        expect(text.contains("." + "first" + "other"), "\(text.suffix(300))")
        expect(text.hasSuffix("third"), "\(text.suffix(300))")
        expectEqual(requests, 2)
    }

    /// Fulfilled when the server has ended the connection, in any way.
    private func toTheEnd(_ client: Connection, _ body: @escaping (RawSpan) -> Void = { _ in }) -> Promise<Void> {
        client.forEachChunk { body($0) }.recover { _ in .value }
    }

    /// A chat message that is refused because the queue is full must not be missing among those that follow.
    @Test(.inLoop, arguments: ["before it reads", "in its answer", "in an answer that is awaited"])
    func aSocketThatHasLostAMessageEnds(_ place: String) throws {
        let large = [UInt8](repeating: 0, count: 1 << 20)
        var told: (any Error)?
        let lines = try unhandled {
            let client = try serveClient { request in
                .now(
                    .webSocket(request) { socket in
                        @discardableResult func send() -> Promise<Void> {
                            for _ in 0..<7 { socket.send(.bytes(large)) }
                            return socket.send(.bytes(large))
                        }
                        if place == "before it reads" { send() }
                        return socket.forEach { _ in
                            let last = place == "before it reads" ? .value : send()
                            return place == "in its answer" ? .value : last
                        }.tapError { told = $0 }
                    })
            }
            try hang(client.write(Array((WebSocketTests.handshake + "\r\n").utf8) + WebSocketTests.frame(0x81, "x")))
            try hang(after(.seconds(1)).then { toTheEnd(client) }, timeout: .seconds(30))
            try hang(served, timeout: .seconds(30))
        }
        expect((told as? WebSocketError)?.code == 1006 || place.hasSuffix("awaited") && told is SystemError)
        expect(lines == [] && errors.isEmpty)
    }
}
