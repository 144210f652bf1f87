/// Pings and a client's close are answered whoever receives, and even if nobody does.
struct WebSocketReadingTests {
    /// Actions of a handler, not all of which receive.
    enum Handler: CaseIterable { case sends, sendsBlindly, waits, receivesOnce, receives, isInBody }

    private static func serve(_ handler: Handler, _ socket: WebSocket) -> Promise<Void> {
        func tick() -> Promise<Void> { after(.seconds(1)).then { socket.send("t") }.then { tick() } }
        return switch handler {
        case .sends: tick()
        case .sendsBlindly:
            repeatWhile {
                after(.seconds(1)).map {
                    socket.send("t"); return true
                }
            }
        case .waits: after(.seconds(1_000_000)).asPromise()
        case .receivesOnce: socket.receive().then { _ in tick() }
        case .receives: socket.forEach { _ in }
        case .isInBody: socket.forEach { _ in after(.seconds(20)) }
        }
    }

    private static func frame(_ first: UInt8, _ text: String = "") -> [UInt8] {
        WebSocketTests.frame(first, Array(text.utf8))
    }

    /// It has the message, or the next one gets it.
    @Test(.inLoop) func aReceiveThatIsCancelledAfterItsMessageHasArrived() throws {
        var control: [Connection] = []
        let serve = { (socket: WebSocket) -> Promise<Void> in
            let (one, other) = try Connection.pair()
            control = [one, other]
            let message = socket.receive()
            let cancelled = one.read().done { _ in message.cancel() }
            return cancelled.then { message.settledValue.map { .value($0) } ?? socket.receive() }.done {
                socket.send($0 ?? .text("lost"))
            }
        }
        let client = try connectedSocket(serve)
        hang(after(.milliseconds(1)))
        for (connection, bytes) in [(control[1], [0]), (client, Self.frame(0x81, "hello"))] {
            connection.write(bytes).cauterize()
        }
        expectEqual(try hang(client.read(exactly: 7), timeout: .seconds(5)), [0x81, 5] + Array("hello".utf8))
        for connection in control { connection.abort() }
    }

    /// Also if another receiver follows before the job that tells the socket; that one goes on.
    @Test(.inLoop, arguments: [false, true])
    func aCancelledForEachCancelsThePromiseOfItsBody(isFollowed: Bool) throws {
        var stopped = 0
        var work: [Resolver<Void>] = []
        let serve = { (socket: WebSocket) -> Promise<Void> in
            let messages = socket.forEach { _ in
                let (promise, resolver) = Promise<Void>.pending()
                resolver.onCancel { stopped += 1 }
                work.append(resolver)
                return promise
            }
            return after(.seconds(1)).then { () -> Promise<Void> in
                messages.cancel()
                return isFollowed ? socket.receive().asVoid() : after(.seconds(1)).asPromise()
            }.done { socket.send("\(stopped) of \(work.count)") }
        }
        let client = try connectedSocket(serve)
        client.write(Self.frame(0x81, "hello")).cauterize()
        after(.seconds(2)).done { client.write(Self.frame(0x81, "again")).cauterize() }
        expectEqual(try hang(client.read(exactly: 8), timeout: .seconds(5)), [0x81, 6] + Array("1 of 1".utf8))
    }

    /// The frames up to the first one that is no tick.
    private func next(_ client: Connection) throws -> [UInt8] {
        while true {
            let head = try hang(client.read(exactly: 2), timeout: .seconds(10))
            let payload = head[1] == 0 ? [] : try hang(client.read(exactly: Int(head[1])), timeout: .seconds(10))
            if head != [0x81, 1] { return head + payload }
        }
    }

    /// The remaining frames, without the ticks.
    private func rest(_ client: Connection) throws -> [UInt8] {
        let all = try hang(client.receiveAll(), timeout: .seconds(300))
        var rest = all[...]
        while rest.starts(with: [0x81, 1]) { rest = rest.dropFirst(3) }
        return Array(rest)
    }

    @Test(.inLoop, arguments: Handler.allCases) func aPingIsAnswered(_ handler: Handler) throws {
        let client = try connectedSocket { Self.serve(handler, $0) }
        // Some receive the first one, with others it waits.
        try hang(client.write(Self.frame(0x81, "a") + Self.frame(0x89, "p")))
        expectEqual(try next(client), [0x8A, 1, 0x70])
        try hang(after(.seconds(5)).then { client.write(Self.frame(0x82, "b") + Self.frame(0x89, "q")) })
        expectEqual(try next(client), [0x8A, 1, 0x71])
    }

    /// The client waits for the handler only as long as the handler could be notified.
    @Test(.inLoop, arguments: Handler.allCases, [false, true])
    func aCloseIsAnsweredAndEndsTheConnection(_ handler: Handler, _ sendsMessage: Bool) throws {
        let client = try connectedSocket { Self.serve(handler, $0) }
        let message = sendsMessage ? Self.frame(0x81, "a") : []
        let begin = EventLoop.current.now
        try hang(client.write(message + WebSocketTests.closed))
        expectEqual(try rest(client), WebSocketTests.ended)
        // A body in progress is waited for.
        let limit = handler == .isInBody && sendsMessage ? 20.0 : 6
        expect(begin.duration(to: EventLoop.current.now) <= .seconds(limit) + .milliseconds(100))
    }

    enum End: CaseIterable { case halfClose, reset, brokenFrame, silence }

    /// A handler that never receives is not kept for ever.
    @Test(.inLoop, arguments: Handler.allCases, End.allCases)
    func anEndWithoutACloseEndsTheHandler(_ handler: Handler, _ end: End) throws {
        var hasEnded = false
        let serve = { (socket: WebSocket) in Self.serve(handler, socket).ensure { hasEnded = true } }
        let client = try connectedSocket(serve)
        switch end {
        case .halfClose: try hang(client.shutdownWrite())
        case .reset: client.abort()
        case .brokenFrame: try hang(client.write([0x81, 1, 0x61]))
        case .silence: break
        }
        if end != .reset { _ = try? hang(client.receiveAll(), timeout: .seconds(300)) }
        hang(after(.seconds(30)))
        expect(hasEnded)
    }

    /// The server reads no more from a client that sends too much than it keeps.
    @Test(
        .inLoop,
        arguments: Handler.allCases.map { ($0, false) }
            + [Handler.sends, .sendsBlindly, .waits].map { ($0, true) })
    func aDrainSaysGoodbye(_ handler: Handler, sendsTooMuch: Bool) throws {
        try ReactorHTTPTests.serve { .now(.webSocket($0, limit: 20_000) { Self.serve(handler, $0) }) }
        let client = try connected()
        let sent = client.write(WebSocketTests.handshake + "\r\n")
        _ = try hang(sent.then { client.read(until: "\r\n\r\n") }, timeout: .seconds(1))
        let message = Self.frame(0x82, String(repeating: "x", count: 10_000))
        let flooded = client.write((0..<(sendsTooMuch ? 300 : 0)).flatMap { _ in message })
        hang(after(.seconds(3)))
        let begin = EventLoop.current.now
        let drained = listener.drain(deadline: .seconds(10))
        expectEqual(try next(client), [0x88, 2, 0x03, 0xE9])
        try hang(flooded.then { client.write(WebSocketTests.frame(0x88, [0x03, 0xE9])) }, timeout: .seconds(4))
        expectEqual(try rest(client), [])
        client.close()
        expectEqual(try hang(drained.asPromise(), timeout: .seconds(20)).aborted, 0)
        expect(begin.duration(to: EventLoop.current.now) < .seconds(sendsTooMuch ? 8 : 2))
    }

    // MARK: Messages that wait

    @Test(.inLoop) func messagesWaitForTheFirstReceive() throws {
        var received: [WebSocket.Message?] = []
        let serve = { (socket: WebSocket) -> Promise<Void> in
            after(.seconds(3)).then { socket.receive() }.then { message -> Promise<Void> in
                received.append(message)
                return after(.seconds(1)).then { socket.forEach { received.append($0) } }
            }.then { socket.receive() }.done { received.append($0) }
        }
        let client = try connectedSocket(serve)
        try hang(client.write(Self.frame(0x81, "a") + Self.frame(0x81, "b") + Self.frame(0x81, "c")))
        try hang(client.write(WebSocketTests.closed))
        expectEqual(try rest(client), WebSocketTests.ended)
        expectEqual(received, [.text("a"), .text("b"), .text("c"), nil])
    }

    /// Messages to a handler that receives slowly stay in the kernel, and at the client.
    @Test(.inLoop) func whatNobodyReceivesHasALimit() throws {
        let count = 400
        var received = 0
        let serve = { (socket: WebSocket) -> Promise<Void> in
            after(.seconds(100)).then {
                socket.forEach { message in
                    let text = "\(received)" + String(repeating: "x", count: 5000)
                    expectEqual(message, .text(text))
                    received += 1
                }
            }
        }
        let client = try connectedSocket(limit: 10_000, serve)
        var frames: [UInt8] = []
        for number in 0..<count { frames += Self.frame(0x81, "\(number)" + String(repeating: "x", count: 5000)) }
        let written = client.write([frames, WebSocketTests.closed])
        hang(after(.seconds(99)))
        expect(written.isPending && received == 0)
        expectEqual(try rest(client), WebSocketTests.ended)
        expectEqual(received, count)
    }

    /// In the same job.
    @Test(.inLoop, arguments: [false, true]) func anotherReceiveFollowsACancelledOneAtOnce(wasForEach: Bool) throws {
        var received: WebSocket.Message?
        let serve = { (socket: WebSocket) -> Promise<Void> in
            if wasForEach { socket.forEach { _ in }.cancel() } else { socket.receive().cancel() }
            return socket.receive().done { received = $0 }
        }
        let client = try connectedSocket(serve)
        try hang(client.write(Self.frame(0x81, "a")))
        expectEqual(try next(client), WebSocketTests.ended)
        expectEqual(received, .text("a"))
    }

    /// The cancellation comes so many jobs after the event that ends the connection.
    @Test(.inLoop, arguments: 0..<8) func aCancelledReceiveTakesNoError(jobs: Int) throws {
        var control: [Connection] = []
        var error: (any Error)?
        let serve = { (socket: WebSocket) -> Promise<Void> in
            let (one, other) = try Connection.pair()
            control = [one, other]
            let message = socket.receive()
            message.catch { error = $0 }
            func wait(_ left: Int) -> Promise<Void> { left == 0 ? .value : Promise<Void>.value.then { wait(left - 1) } }
            let cancelled = one.read().then { _ in wait(jobs) }.done { message.cancel() }
            return cancelled.then { socket.receive().asVoid() }.map { nil }.recover { .value($0) }
                .done { error = error ?? $0 }
        }
        let client = try connectedSocket(serve)
        hang(after(.milliseconds(1)))
        control[1].write([0]).cauterize()
        try hang(client.shutdownWrite())
        _ = try? hang(client.receiveAll(), timeout: .seconds(300))
        for connection in control { connection.abort() }
        expectEqual((error as? WebSocketError)?.code, 1006)
    }

    @Test(.inLoop) func aSecondReceiveIsRefused() throws {
        var error: (any Error)?
        let serve = { (socket: WebSocket) -> Promise<Void> in
            let first = socket.receive()
            socket.receive().catch(policy: .allErrors) { error = $0 }
            return first.asVoid()
        }
        let client = try connectedSocket(serve)
        try hang(client.write(Self.frame(0x81, "a")))
        expectEqual(try next(client), WebSocketTests.ended)
        expectEqual((error as? SystemError)?.description.contains("EBUSY"), true)
    }

    /// The body of the first `forEach` has failed.
    @Test(.inLoop) func anotherForEachTakesUpBehindOneThatHasEnded() throws {
        struct Flaw: Error {}
        var received: [WebSocket.Message] = []
        let serve = { (socket: WebSocket) -> Promise<Void> in
            let first = socket.forEach { message -> Promise<Void> in
                received.append(message)
                return after(.seconds(1)).then { () -> Promise<Void> in throw Flaw() }
            }
            return first.recover { _ in after(.seconds(1)).then { socket.forEach { received.append($0) } } }
        }
        let client = try connectedSocket(serve)
        try hang(client.write(Self.frame(0x81, "a") + Self.frame(0x81, "b") + WebSocketTests.closed))
        expectEqual(try rest(client), WebSocketTests.ended)
        expectEqual(received, [.text("a"), .text("b")])
    }

    /// Sockets, one with a pending handler, when the loop ends.
    @Test(arguments: Handler.allCases) func nothingIsLeftBehindTheLoop(_ handler: Handler) throws {
        weak var server: WebSocket?
        weak var client: WebSocket?
        try withVirtualTime { _ in
            let listener = try Listener.bind("127.0.0.1:0")
            listener.serveHTTP { request in
                Response.webSocket(request) {
                    server = $0
                    return Self.serve(handler, $0)
                }
            }
            let socket = try hang(connectWebSocket(to: "ws://\(listener.localAddress)"), timeout: .seconds(1))
            client = socket
            socket.send("a")
            if handler == .receives { socket.receive().catch(policy: .allErrors) { _ in } }
            hang(after(.milliseconds(10)))
            expect(server != nil)
        }
        expect(server == nil && client == nil)
    }
}
