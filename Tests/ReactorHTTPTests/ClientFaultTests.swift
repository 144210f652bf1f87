/// Faults of clients are no errors of the service, however frequent; other faults are.
@Suite(.serialized) struct ClientFaultTests {
    private static let post = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc"

    private static let upgrade = "GET /upgrade HTTP/1.1\r\nHost: x\r\n\r\n"

    struct Fault: Sendable, CustomStringConvertible {
        let description: String
        let sent: String
        /// Resets the connection; if false, half-closes.
        var resets = true
    }

    /// The errors of a server whose handler uses the body and writes much, while a client commits `fault`.
    private func errors(of fault: Fault, _ handler: @escaping (Request) throws -> Answer) throws -> [String] {
        var errors: [String] = []
        try withServer(onError: { error, _ in errors.append("\(error)") }, handler) { address, listener in
            let client = try hang(connect(to: address), timeout: patience)
            try hang(client.write(fault.sent), timeout: patience)
            if fault.resets {
                // After the bytes, which have to arrive.
                try EventLoop.current.run(until: { listener.activeConnections != 0 })
                client.abort()
            } else {
                try hang(client.shutdownWrite().then { client.forEachChunk { _ in .value } }, timeout: patience)
                client.close()
            }
            try EventLoop.current.run(until: { listener.activeConnections == 0 })
        }
        return errors
    }

    @Test(arguments: [
        Fault(description: "half a head, and a reset", sent: "GET / HTTP/1.1\r\nHo"),
        Fault(description: "half a head, and the end", sent: "GET / HTTP/1.1\r\nHo", resets: false),
        Fault(description: "no HTTP, and the end", sent: "\u{16}\u{3}\u{1}\r\n", resets: false),
        Fault(description: "half a body, and a reset", sent: post),
        Fault(description: "half a body, and the end", sent: post, resets: false),
        Fault(description: "a response that nobody reads, and a reset", sent: "GET /large HTTP/1.1\r\nHost: x\r\n\r\n"),
        Fault(description: "half a body that is sent back, and a reset", sent: "PUT" + post.dropFirst(4)),
        Fault(
            description: "half a body that is sent back, and the end", sent: "PUT" + post.dropFirst(4), resets: false),
        Fault(description: "half a body that nobody reads, and a reset", sent: "PATCH" + post.dropFirst(4)),
        Fault(
            description: "half a body that nobody reads, and the end", sent: "PATCH" + post.dropFirst(4), resets: false),
        Fault(description: "a WebSocket, and a reset", sent: WebSocketTests.handshake + "\r\n"),
        Fault(description: "a WebSocket, and the end", sent: WebSocketTests.handshake + "\r\n", resets: false),
        Fault(
            description: "a WebSocket, and no frame", sent: WebSocketTests.handshake + "\r\n\u{7F}\u{7F}", resets: false
        ),
        Fault(description: "another protocol, half a frame, and a reset", sent: upgrade + "\u{5}abc"),
        Fault(description: "another protocol, half a frame, and the end", sent: upgrade + "\u{5}abc", resets: false),
        Fault(description: "another protocol, and too long a frame", sent: upgrade + "\u{7F}abc", resets: false),
    ]) func clientsCauseNoErrorOfTheService(_ fault: Fault) throws {
        let large = [UInt8](repeating: 0, count: 1 << 20)
        let reported = try errors(of: fault) { request in
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
            case (.get, "/large"): return .now(.stream { output in repeatWhile { output.write(large).map { true } } })
            case (.get, _): return .now(.webSocket(request) { socket in socket.forEach { socket.send($0) } })
            default: return .now(Response(""))
            }
        }
        expectEqual(reported, [])
    }

    /// An error of a database, for instance, whose connection is another one.
    @Test(
        arguments: [
            SystemError(.receive, ECONNRESET), StreamError.endedEarly(expected: .frame, got: 1),
            StreamError.timedOut(got: 0),
            BodyError.endedEarly, BodyError.unreadable, PeerGone.failed(SystemError(.receive, ECONNRESET)),
            NoDatabase(),
        ] as [any Error & Sendable]) func theErrorsOfOthersAreTheServices(_ error: any Error & Sendable) throws
    {
        // Without a body, with a whole one; another kind also behind one that has failed, and behind an upgrade.
        let chunks = "POST /chunks HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nno length\r\n"
        let sent = [(Self.get, 500), (Self.post + "defghi", 500), (chunks, 500), (Self.upgrade, 101)]
        for (request, status) in error is NoDatabase ? sent : Array(sent.prefix(2)) {
            var errors: [String] = []
            let handler = { (request: Request) -> Answer in
                if request.path == "/upgrade" { return .now(.upgrade(to: "x") { _ in Promise(error: error) }) }
                var body = request.body.bytes()
                if request.path == "/chunks" { body = body.recover { _ in .value([]) } }
                return .later(body.then { _ in Promise<Response>(error: error) })
            }
            try withServer(onError: { error, _ in errors.append("\(error)") }, handler) { address, _ in
                try expect([status], address, request)
            }
            expectEqual(errors, ["\(error)"])
        }
    }

    struct NoDatabase: Error {}

    /// The peer of another connection, such as a database, has left; this client still reads.
    @Test(arguments: [true, false]) func thePeerOfAnotherConnectionIsNotTheClient(_ isStream: Bool) throws {
        var errors: [String] = []
        let handler = { (request: Request) -> Answer in
            let gone = Promise<Response>(error: PeerGone.ended)
            return isStream ? .now(.stream { _ in gone.asVoid() }) : .later(gone)
        }
        try withServer(onError: { error, _ in errors.append("\(error)") }, handler) { address, _ in
            let client = try hang(connect(to: address), timeout: patience)
            try hang(client.write(Self.get), timeout: patience)
            let answer = try hang(client.read(until: "\r\n"), timeout: patience)
            expectEqual(answer.map { String(decoding: $0, as: UTF8.self) }, "HTTP/1.1 500 Internal Server Error")
            client.close()
        }
        expectEqual(errors, ["\(PeerGone.ended)"])
    }

    /// Another connection fails with the same error as the client's, which was reset.
    @Test(arguments: [true, false]) func anErrorOfTheSameKindIsNotThatOfTheClient(_ isStream: Bool) throws {
        var (errors, isCalled) = ([String](), false)
        let handler = { (request: Request) -> Answer in
            guard let connection = request.connection else { return .now(Response("")) }
            isCalled = true
            let failed = connection.peerGone().then { _ in Promise<Response>(error: SystemError(.receive, ECONNRESET)) }
            return isStream ? .now(.stream { _ in failed.asVoid() }) : .later(failed)
        }
        try withServer(onError: { error, _ in errors.append("\(error)") }, handler) { address, _ in
            let client = try hang(connect(to: address), timeout: patience)
            try hang(client.write(Self.get), timeout: patience)
            try EventLoop.current.run(until: { isCalled })
            client.abort()
            try EventLoop.current.run(until: { !errors.isEmpty })
        }
        expectEqual(errors, ["\(SystemError(.receive, ECONNRESET))"])
    }

    /// For a layer such as TLS, whose clients end without an end record, or send invalid records.
    @Test(arguments: ["", "GET / HTTP/1.1\r\nHo", get, post, "PUT" + post.dropFirst(4), "!"])
    func whatClientsBreakInAFilterIsNoErrorOfTheService(_ sent: String) throws {
        struct Broken: Error {}
        struct Filter: ConnectionFilter {
            mutating func receive(_ bytes: RawSpan, _ output: inout FilterOutput) throws {
                if bytes.byteCount > 0, bytes.unsafeLoad(as: UInt8.self) == UInt8(ascii: "!") { throw Broken() }
                output.deliver(bytes)
            }
            mutating func write(_ bytes: RawSpan, _ output: inout FilterOutput) { output.send(bytes) }
        }
        var errors: [String] = []
        let lines = LoggedLines()
        var options = HTTPOptions()
        options.log = { lines.add("\($0.status.code)") }
        try EventLoop.withLoop { _ in
            let listener = try Listener.bind("127.0.0.1:0")
            var serving = ServeOptions()
            serving.prepare = { $0.filter(Filter()) }
            let served = listener.serveHTTP(
                options, serving: serving, onError: { error, _ in errors.append("\(error)") }
            ) { request -> Answer in
                let body = request.body
                if request.method == .put { return .now(.stream { output in body.forEach { output.write($0) } }) }
                return .later(body.text().map { Response($0) })
            }
            let client = try hang(connect(to: listener.localAddress), timeout: patience)
            try hang(client.write(sent).then { client.shutdownWrite() }, timeout: patience)
            try? hang(client.forEachChunk { _ in .value }, timeout: patience)
            client.close()
            try EventLoop.current.run(until: { listener.activeConnections == 0 })
            listener.close()
            _ = try hang(served, timeout: patience)
        }
        expectEqual(errors, [])
        expect(lines.lines.count == (sent.contains("\r\n\r\n") ? 1 : 0), "\(lines.lines)")
    }

    /// The certificate may be the cause: `onError` gets the error, and limits its lines.
    @Test func aHandshakeThatFailsIsReported() throws {
        struct Broken: Error {}
        struct Filter: ConnectionFilter {
            mutating func begin(_ output: inout FilterOutput) {}
            mutating func receive(_ bytes: RawSpan, _ output: inout FilterOutput) throws { throw Broken() }
            mutating func write(_ bytes: RawSpan, _ output: inout FilterOutput) {}
        }
        var errors: [String] = []
        try EventLoop.withLoop { _ in
            let listener = try Listener.bind("127.0.0.1:0")
            var serving = ServeOptions()
            serving.prepare = { $0.filter(Filter()) }
            listener.serveHTTP(serving: serving, onError: { error, _ in errors.append("\(error)") }) { _ in Response("")
            }
            let client = try hang(connect(to: listener.localAddress), timeout: patience)
            try hang(client.write("hello"), timeout: patience)
            try EventLoop.current.run(until: { !errors.isEmpty })
            client.close()
            listener.close()
        }
        expectEqual(errors, ["\(Broken())"])
    }

    /// However the server gives it up.
    @Test func aWebSocketWhoseClientDoesNotReadIsNoErrorOfTheService() throws {
        var errors: [String] = []
        let large = [UInt8](repeating: 0, count: 1 << 20)
        try withVirtualTime { _ in
            let (client, server) = try Connection.pair()
            let served = server.serveHTTP(onError: { error, _ in errors.append("\(error)") }) { request in
                Response.webSocket(request) { socket in
                    for _ in 0..<3 { socket.send(.bytes(large)) }
                    return socket.forEach { _ in }
                }
            }
            try hang(client.write(WebSocketTests.handshake + "\r\n"))
            do { try hang(served, timeout: .seconds(3600)) } catch { errors.append("\(error)") }
            server.close()
            client.close()
        }
        expectEqual(errors, [])
    }

    // MARK: The access log

    private static let get = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"

    /// As in nginx.
    @Test(arguments: ["a promise", "a task", "a stream", "a body", "a limit of the listener"], [true, false])
    func aClientThatLeavesBeforeItsResponseIsLogged(_ what: String, resets: Bool) throws {
        let log = LoggedLines()
        var options = HTTPOptions()
        options.log = { log.add("\($0.request?.path ?? "-") \($0.status.code)") }
        var errors: [String] = []
        var begun = 0
        let never = { after(.seconds(3600)).asPromise() }
        let handler = { (request: Request) -> Answer in
            begun += 1
            let connection = request.connection!
            switch what {
            case "a promise": return .later(connection.cancelWhenPeerGone(never).map { Response("") })
            case "a stream": return .now(.stream { _ in connection.cancelWhenPeerGone(never) })
            case "a body": return .later(request.body.text().map { Response($0) })
            default: return .later(never().map { Response("") })
            }
        }
        try EventLoop.withLoop { _ in
            let listener = try Listener.bind("127.0.0.1:0")
            let serving = ServeOptions(cancelsWhenPeerGone: what != "a promise" && what != "a stream")
            let forever = never()
            let served =
                if what == "a task" {
                    listener.serveHTTP(options, serving: serving) { _ async throws in
                        begun += 1
                        try await forever.value
                        return Response("")
                    }
                } else {
                    listener.serveHTTP(
                        options, serving: serving, onError: { error, _ in errors.append("\(error)") }, handler: handler)
                }
            let client = try hang(connect(to: listener.localAddress), timeout: patience)
            try hang(client.write(what == "a body" ? Self.post : Self.get), timeout: patience)
            try EventLoop.current.run(until: { begun != 0 })
            expect(log.lines.isEmpty)
            if resets { client.abort() } else { client.close() }
            try EventLoop.current.run(until: { !log.lines.isEmpty })
            listener.close()
            _ = try hang(served, timeout: patience)
        }
        // A client that half-closed may still read.
        expectEqual(log.lines, [what == "a body" && !resets ? "/ 400" : "/ 499"])
        expect(errors.isEmpty)
    }

    /// The requests of a drain that ends before their response.
    @Test func aRequestThatADrainAbortsIsLogged() throws {
        let log = LoggedLines()
        var options = HTTPOptions()
        options.log = { log.add("\($0.request?.path ?? "-") \($0.status.code)") }
        try EventLoop.withLoop(clock: VirtualClock()) { _ in
            let listener = try Listener.bind("127.0.0.1:0")
            var begun = 0
            let served = listener.serveHTTP(options) { _ in
                begun += 1
                return after(.seconds(3600)).map { Response("") }
            }
            let client = try hang(connect(to: listener.localAddress), timeout: patience)
            try hang(client.write(Self.get), timeout: patience)
            try EventLoop.current.run(until: { begun != 0 })
            listener.drain(deadline: .seconds(1))
            _ = try hang(served, timeout: .seconds(3600))
            client.close()
        }
        expectEqual(log.lines, ["/ 499"])
    }

    // MARK: Writes that are ignored

    /// The reports of unhandled rejections on this thread while `body` runs.
    private func unhandled(_ body: () throws -> Void) rethrows -> [String] {
        let lines = LoggedLines()
        let thread = pthread_self()
        let before = conf.logHandler
        conf.logHandler = { event in
            guard pthread_equal(thread, pthread_self()) != 0 else { return before(event) }
            if case .unhandledRejection(let error, _) = event { lines.add("\(error)") }
        }
        defer { conf.logHandler = before }
        try body()
        return lines.lines
    }

    /// A program that sends at its own pace, such as prices, learns from `forEach` that the client has left.
    @Test(arguments: [true, false]) func ignoredWritesReportNothing(_ isSocket: Bool) throws {
        let large = [UInt8](repeating: 0, count: 1 << 20)
        var failures = 0
        let handler = { (request: Request) -> Answer in
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
            try withServer(handler) { address, _ in
                let client = try hang(connect(to: address), timeout: patience)
                let request = isSocket ? WebSocketTests.handshake + "\r\n" : Self.get
                _ = try hang(client.write(request).then { client.read(exactly: 1000) }, timeout: patience)
                client.abort()
                try EventLoop.current.run(until: { failures != 0 })
            }
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
                        if isFirst { expect(part.isCancelled) }
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
    @Test(arguments: ["before it reads", "in its answer", "in an answer that is awaited"])
    func aSocketThatHasLostAMessageEnds(_ place: String) throws {
        let large = [UInt8](repeating: 0, count: 1 << 20)
        var told: (any Error)?
        var failures: [String] = []
        let lines = try unhandled {
            try withVirtualTime { _ in
                let (client, server) = try Connection.pair()
                let served = server.serveHTTP(onError: { error, _ in failures.append("\(error)") }) { request in
                    Response.webSocket(request) { socket in
                        @discardableResult func send() -> Promise<Void> {
                            for _ in 0..<7 { socket.send(.bytes(large)) }
                            return socket.send(.bytes(large))
                        }
                        if place == "before it reads" { send() }
                        return socket.forEach { _ in
                            let last = place == "before it reads" ? .value : send()
                            return place == "in its answer" ? .value : last
                        }.tapError { told = $0 }
                    }
                }
                try hang(
                    client.write(Array((WebSocketTests.handshake + "\r\n").utf8) + WebSocketTests.frame(0x81, "x")))
                try hang(after(.seconds(1)).then { toTheEnd(client) }, timeout: .seconds(30))
                try hang(served, timeout: .seconds(30))
                client.close()
                server.close()
            }
        }
        expect((told as? WebSocketError)?.code == 1006 || place.hasSuffix("awaited") && told is SystemError)
        expect(lines == [] && failures == [])
    }
}

// @unchecked: the server calls it on the thread of the test.
final class LoggedLines: @unchecked Sendable {
    private(set) var lines: [String] = []
    func add(_ line: String) { lines.append(line) }
}
