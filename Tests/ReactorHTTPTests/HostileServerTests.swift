import SimulatedNetwork

/// Servers that are slow, endless or broken, and clients that cancel. Afterwards the pool's one place is free again.
struct HostileServerTests {
    /// Starts a server that treats each connection as `serve` says, on a virtual clock. In the end it is a good one.
    private func serveHostile(
        options: HTTPClient.Options = HTTPClient.Options(), _ serve: @escaping (Connection) -> Promise<Void>
    ) throws {
        var isHostile = true
        try servePeer { connection in
            if isHostile { return serve(connection) }
            return connection.forEachFrame(DelimiterDecoder("\r\n\r\n")) { _, _ in
                connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            }
        }
        var options = options
        options.connections.perKey = 1
        useClient(options)
        atEnd {
            isHostile = false
            let text = client.fetch("http://\(address)/").then { $0.body.text() }
            if try hang(text, timeout: .seconds(3600)) != "ok" { throw FetchError.endedEarly }
            try EventLoop.current.run(until: { listener.activeConnections <= 1 })
            client.close()
            try EventLoop.current.run(until: { listener.activeConnections == 0 })
        }
    }

    /// The action of a server after a request.
    private static func asked(_ serve: @escaping (Connection) -> Promise<Void>) -> (Connection) -> Promise<Void> {
        { connection in connection.read(until: "\r\n\r\n").then { _ in serve(connection) } }
    }

    private static func trickle(_ text: String, to connection: Connection) -> Promise<Void> {
        forEach(Array(text.utf8)) { byte in connection.write([byte]).then { after(.seconds(2)) } }
    }

    /// The result of a fetch with its body, and the time until then.
    private func outcome(_ body: RequestBody? = nil) -> (String, Duration) {
        let begin = EventLoop.current.now
        let fetched = client.fetch("http://\(address)/", .put, body: body).then { $0.body.bytes() }
        var text = ""
        do { text = "\(try hang(fetched, timeout: .seconds(3600)).count)" } catch { text = "\(error)" }
        return (text, begin.duration(to: EventLoop.current.now))
    }

    /// Expects that a fetch is rejected with `error` after so many seconds.
    private func expectEnd(
        _ error: FetchError, after seconds: Range<Double>, of options: HTTPClient.Options, _ body: RequestBody? = nil,
        _ serve: @escaping (Connection) -> Promise<Void>, _ location: SourceLocation = #_sourceLocation
    ) throws {
        try serveHostile(options: options, serve)
        let (seen, time) = outcome(body)
        let inTime = time >= .seconds(seconds.lowerBound) && time < .seconds(seconds.upperBound)
        #expect(seen == "\(error)" && inTime, "\(time)", sourceLocation: location)
        try endServer()
    }

    /// The writer of a body without an end.
    private static func endless(_ output: BodyOutput) -> Promise<Void> {
        output.write([UInt8](repeating: 1, count: 65_536)).then { endless(output) }
    }

    private static let body100 = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + String(repeating: "x", count: 100)

    /// The server must not take a body with missing parts for a whole one, nor wait for them.
    @Test(.inLoop, arguments: [nil, 32 << 20]) func aBodyThatHasLostAPartIsNotSent(_ length: Int?) throws {
        let part = [UInt8](repeating: 0, count: 1 << 20)
        var got: [UInt8] = []
        try serveHostile { connection in after(.seconds(1)).then { connection.forEachChunk { got += [UInt8]($0) } } }
        let body = RequestBody.stream(length: length) { output in
            for _ in 0..<32 { output.write(part) }
            return .value
        }
        let (error, time) = outcome(body)
        expect(error.contains("ENOBUFS") && time < .seconds(3), "\(error)")
        try endServer()
        expect(got.count < 32 << 20 && got.suffix(5) != Array("0\r\n\r\n".utf8)[...])
    }

    /// A gateway answers 502, not with the status of its own clients' faults.
    @Test(
        .inLoop,
        arguments: [
            ("SSH-2.0-OpenSSH_9.2\r\n", "", ""), ("HTTP/2 200 OK\r\n\r\n", "", ""), ("HTTP/1.1 20 OK\r\n\r\n", "", ""),
            ("HTTP/1.1 101 Switching Protocols\r\n\r\n", "", ""), ("HTTP/1.1 200 OK\nA: b\n\n", "", ""),
            ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "", ""),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", "", ""),
            ("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n", "", "more than 99 bytes"),
            ("HTTP/1.1 200 OK\r\n\r\n", "x", "more than 99 bytes"), ("HTTP/1.1 200 OK\r\nA: ", "x", "more than"),
            ("", "HTTP/1.1 103 Early\r\n\r\n", "more than 65536 bytes"),
            ("HTTP/1.1 200 OK\r\n", "A: b\r\n", "more than"),
        ])
    func whatServersBreakIsABadGateway(_ response: String, endlessly rest: String, _ reason: String) throws {
        var options = HTTPClient.Options()
        options.maxBody = 99
        let sent = response + String(repeating: rest, count: 100_000)
        try serveHostile(options: options, Self.asked { $0.write(sent) })
        let fetched = client.fetch("http://\(address)/").then { $0.body.bytes() }
        let error = #expect(throws: HTTPError.self) { _ = try hang(fetched, timeout: .seconds(3600)) }
        expect(error?.status == Status(502) && error?.reason.isEmpty == false)
        expect(error?.description.hasPrefix("unusable response of the server: ") == true)
        expect(reason.isEmpty || error?.reason.contains(reason) == true, "\(String(describing: error))")
    }

    @Test(.inLoop) func neitherATrickleNorEarlyHeadsProlongTheTimeOfTheHead() throws {
        var options = HTTPClient.Options()
        options.firstByte = .seconds(5)
        let early = "HTTP/1.1 103 Early\r\n\r\n"
        for head in ["HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", early] {
            try expectEnd(
                .timedOut(.firstByte), after: 0..<11, of: options, nil, Self.asked { Self.trickle(head, to: $0) })
        }
        func hint(_ connection: Connection) -> Promise<Void> {
            connection.write(early).then { after(.seconds(2)) }.then { hint(connection) }
        }
        try expectEnd(.timedOut(.firstByte), after: 0..<11, of: options, nil, Self.asked(hint))
    }

    @Test(.inLoop) func aTrickleOfABodyIsEndedByTotalAndNotByIdle() throws {
        var options = HTTPClient.Options()
        options.idle = .seconds(3)
        let serve = Self.asked { connection in
            connection.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n").then {
                Self.trickle(String(repeating: "x", count: 100), to: connection)
            }
        }
        try serveHostile(options: options, serve)
        let (count, time) = outcome()
        expect(count == "100" && time > .seconds(190))
        try endServer()
        options.total = .seconds(20)
        try expectEnd(.timedOut(.total), after: 18..<23, of: options, nil, serve)
        options.total = nil
        options.idle = .seconds(1)
        try expectEnd(.timedOut(.idle), after: 0..<4, of: options, nil, serve)
    }

    @Test(.inLoop) func totalEndsWhatNoOtherLimitDoes() throws {
        var options = HTTPClient.Options()
        (options.firstByte, options.idle, options.total) = (nil, nil, .seconds(20))
        let trickle = Self.asked { Self.trickle(Self.body100, to: $0) }
        try expectEnd(.timedOut(.total), after: 20..<21, of: options, nil, trickle)
        // All redirects count.
        func redirect(_ connection: Connection) -> Promise<Void> {
            connection.forEachFrame(DelimiterDecoder("\r\n\r\n")) { _, _ in
                after(.seconds(8)).then {
                    connection.write("HTTP/1.1 307 Again\r\nLocation: /\r\nContent-Length: 0\r\n\r\n")
                }
            }
        }
        try expectEnd(.timedOut(.total), after: 20..<21, of: options, nil, redirect)
    }

    /// If the rest has arrived by then, or has not, or another read waits for it.
    @Test(.inLoop, arguments: [100, 10, 0]) func totalEndsABodyThatTheProgramReadsSlowly(_ sent: Int) throws {
        var options = HTTPClient.Options()
        options.total = .seconds(20)
        let serve = Self.asked { connection in
            connection.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nx").then { after(.seconds(1)) }
                .then { connection.write([UInt8](repeating: 1, count: max(sent - 1, 0))) }.then { after(.seconds(60)) }
        }
        try serveHostile(options: options, serve)
        let response = try hang(client.fetch("http://\(address)/"), timeout: .seconds(3600))
        _ = try hang(response.body.read(), timeout: .seconds(3600))
        if sent > 0 { hang(after(.seconds(25))) }
        #expect(throws: FetchError.timedOut(.total)) { try hang(response.body.read(), timeout: .seconds(3600)) }
    }

    @Test(.inLoop) func aHandshakeThatTricklesIsEndedWithTheConnect() throws {
        var options = HTTPClient.Options()
        options.connections.makeTimeout = .seconds(10)
        options.startTLS = { connection, _ in connection.read(exactly: 100).map { _ in connection } }
        try serveHostile(options: options, { Self.trickle(Self.body100, to: $0) })
        let begin = EventLoop.current.now
        #expect(throws: FetchError.timedOut(.connect)) {
            _ = try hang(client.fetch("https://\(address)/"), timeout: .seconds(3600))
        }
        let time = begin.duration(to: EventLoop.current.now)
        expect(time >= .seconds(10) && time < .seconds(11))
    }

    /// The kernel's error is that of no limit.
    @Test func aConnectThatTheKernelGivesUp() {
        withSimulatedNetwork { network in
            let silent = network.host("silent")
            network.link(network.test, silent).connects = .ignored
            var options = HTTPClient.Options()
            (options.connections.makeTimeout, options.connections.waitTimeout) = (nil, nil)
            let client = HTTPClient(options)
            let error = #expect(throws: SystemError.self) {
                _ = try hang(client.fetch("http://\(silent.addresses[0].hostText):7/"), timeout: .seconds(3600))
            }
            expectEqual(error?.call, .connect)
            expectEqual(error?.code, ETIMEDOUT)
            client.close()
        }
    }

    @Test(.inLoop) func aServerThatReadsNothingIsGivenUp() throws {
        var options = HTTPClient.Options()
        options.idle = .seconds(5)
        for body in [.bytes([UInt8](repeating: 1, count: 16 << 20)), .stream(Self.endless)] as [RequestBody] {
            let deaf = { (_: Connection) in after(.seconds(100)).asPromise() }
            try expectEnd(.timedOut(.idle), after: 5..<12, of: options, body, deaf)
            var options = options
            options.total = .seconds(3)
            try expectEnd(.timedOut(.total), after: 3..<4, of: options, body, deaf)
        }
    }

    @Test(
        .inLoop,
        arguments: [
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "HTTP/1.1 200 OK\r\nConte",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
            // Without a length, a reset must not count as the end.
            "HTTP/1.1 200 OK\r\n\r\nab",
        ])
    func aResetIsAnError(_ sent: String) throws {
        try serveHostile(Self.asked { peer in peer.write(sent).then { after(.seconds(1)) }.done { peer.abort() } })
        let (error, _) = outcome()
        expect(error.contains("ECONNRESET"), "\(error)")
    }

    @Test(.inLoop) func whatFollowsABodyIsNotTakenForAResponse() throws {
        var accepted = 0
        try serveHostile { connection in
            accepted += 1
            return connection.read(until: "\r\n\r\n").then { _ in
                connection.write(
                    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
            }.then { after(.seconds(100)) }
        }
        for _ in 0..<2 { expectEqual(outcome().0, "2") }
        expectEqual(accepted, 2)
    }

    @Test(.inLoop) func aServerMayAnswerBeforeItHasReadTheBody() throws {
        var stopped = 0
        let endless = RequestBody.stream { Self.endless($0).ensure { stopped += 1 } }
        let pausing = RequestBody.stream { output in
            output.write("a").then { after(.seconds(1000)) }.then { output.write("late") }.ensure { stopped += 1 }
        }
        for body in [.bytes([UInt8](repeating: 1, count: 16 << 20)), endless, pausing] {
            try serveHostile(
                Self.asked { connection in
                    connection.write("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno").then {
                        after(.seconds(100))
                    }
                })
            let (count, time) = outcome(body)
            expect(count == "2" && time < .seconds(5))
            try endServer()
        }
        expectEqual(stopped, 2)
    }

    enum State: CaseIterable {
        case line, connect, send, stream, head, halfHead, body, redirect
    }

    @Test(.inLoop, arguments: State.allCases) func aFetchCanBeCancelledInEachState(_ state: State) throws {
        var options = HTTPClient.Options()
        if state == .connect {
            options.startTLS = { connection, _ in connection.read(exactly: 1).map { _ in connection } }
        }
        var received = 0
        let serve = { (connection: Connection) -> Promise<Void> in
            received += 1
            let sent =
                switch state {
                case .line, .connect, .send, .stream, .head: ""
                case .halfHead: "HTTP/1.1 200 OK\r\nA: "
                case .body: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab"
                case .redirect: "HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 5\r\n\r\nab"
                }
            let wait = { after(.seconds(10_000)).asPromise() }
            return sent.isEmpty ? wait() : Self.asked { $0.write(sent).then(wait) }(connection)
        }
        try serveHostile(options: options, serve)
        let scheme = state == .connect ? "https" : "http"
        var stopped = 0
        var body: RequestBody?
        if state == .send { body = .bytes([UInt8](repeating: 1, count: 16 << 20)) }
        if state == .stream {
            body = .stream { output in
                output.write("a").then { after(.seconds(5000)) }.ensure { stopped += 1 }
            }
        }
        let first = client.fetch("\(scheme)://\(address)/", .put, body: body).then { $0.body.bytes() }
        let cancelled = state == .line ? client.fetch("\(scheme)://\(address)/").then { $0.body.bytes() } : first
        // Nobody waits long for the body of a redirect.
        let time = state == .redirect ? Duration.milliseconds(50) : .seconds(1)
        _ = try hang(after(time).asPromise(), timeout: .seconds(3600))
        expectEqual(received, 1)
        for promise in [cancelled, first] {
            promise.cancel()
            #expect(throws: PromiseError.self) { _ = try hang(promise, timeout: .seconds(3600)) }
        }
        try EventLoop.current.run(until: { stopped == (state == .stream ? 1 : 0) })
        // No other request follows.
        _ = try hang(after(.seconds(1)).asPromise(), timeout: .seconds(3600))
        expectEqual(received, 1)
    }

    @Test(.inLoop) func aResponseThatIsReleasedUnreadGivesItsPlaceBack() throws {
        let serve = Self.asked {
            $0.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab").then { after(.seconds(10_000)) }
        }
        try serveHostile(serve)
        _ = try hang(client.fetch("http://\(address)/").asVoid(), timeout: .seconds(3600))
    }

    @Test(.inLoop) func aFailingStreamIsNoWholeRequest() throws {
        struct Flaw: Error {}
        var got = ""
        try serveHostile { peer in peer.forEachChunk { got += String(decoding: [UInt8]($0), as: UTF8.self) } }
        let body = RequestBody.stream { output in
            output.write("abc").then { after(.seconds(1)) }.then { Promise<Void>(error: Flaw()) }
        }
        expectEqual(outcome(body).0, "Flaw()")
        expectEqual(outcome(.stream(length: 5) { $0.write("abc") }).0, "\(BodyError.endedEarly)")
        try endServer()
        expect(got.hasSuffix("\r\n\r\nabc") && !got.contains("0\r\n\r\n"))
        // Inside the response, too, the program gets its own error.
        try serveHostile(
            Self.asked { $0.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab").then { after(.seconds(9)) } })
        expectEqual(outcome(body).0, "Flaw()")
        try endServer()
    }

    /// Valid responses with random changes, in random parts, from servers that then end, reset or wait.
    @Test(.inLoop) func noResponseStrandsTheClient() throws {
        let responses = [
            "HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nContent-Length: 5\r\n\r\nhello",
            "HTTP/1.1 103 Early\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\nX: y\r\n\r\n",
            "HTTP/1.0 404 Not Found\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 302 Found\r\nLocation: /a?b#c\r\nContent-Length: 3\r\n\r\nabc", "HTTP/1.1 200\r\n\r\nto the end",
        ]
        var dice = SplitMix64(7)
        var isOver = false
        try serveHostile { connection in
            connection.forEachFrame(DelimiterDecoder("\r\n\r\n")) { _, _ in
                // The last connection may have been kept.
                if isOver { return connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") }
                var bytes = Array(dice.pick(responses).utf8)
                dice.spoil(&bytes, with: [0, 9, 10, 13, 32, 45, 57, 58])
                return dice.sendInTwoParts(bytes, to: connection).done {
                    switch dice.below(3) {
                    case 0: connection.abort()
                    case 1: throw StopReading()
                    default: break
                    }
                }
            }
        }
        var (whole, failed) = (0, 0)
        for _ in 0..<500 {
            let (result, time) = outcome()
            expect(!result.contains("pool") && time < .seconds(600), "\(result)")
            if Int(result) == nil { failed += 1 } else { whole += 1 }
        }
        isOver = true
        // Any remaining work of the last response is done then.
        _ = try hang(after(.seconds(10)).asPromise(), timeout: .seconds(3600))
        expect(whole > 100 && failed > 100)
    }
}
