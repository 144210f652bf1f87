import ReactorHTTPJSON

struct ServerTests {
    static let get = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
    /// The head of a client that asks whether to send its body of five bytes.
    private static let waiting = "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n"

    @Test(.served) func aStreamWithoutAPartIsAnEmptyBody() throws {
        try serve { _ in .now(.stream { _ in .value }) }
        let text = try conversation(Self.get)
        expect(text.hasPrefix("HTTP/1.1 200 OK\r\n") && text.hasSuffix("\r\n\r\n0\r\n\r\n"), text)
    }

    @Test(.served) func aDateOfTheProgramReplacesTheServers() throws {
        try serve { _ in .now(Response("x", headers: ["Date": "today"])) }
        let text = try conversation(Self.get)
        expect(text.hasPrefix("HTTP/1.1 200 OK\r\n") && text.components("Date: ").count == 2, text)
        expect(text.contains("\r\nDate: today\r\n"), text)
    }

    @Test(.served) func answersInTheFormOfTheRequest() throws {
        try serve { request in
            if request.path == "/none" { return .now(Response("text", status: .noContent)) }
            return .now(Response("hi\n", headers: ["X-A": "1", "Content-Length": "99"]))
        }
        let answer = try conversation(Self.get)
        expect(answer.hasPrefix("HTTP/1.1 200 OK\r\nDate: "))
        expect(answer.hasSuffix("X-A: 1\r\nContent-Length: 3\r\n\r\nhi\n"))
        let head = try conversation("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n")
        expect(head.hasSuffix("Content-Length: 3\r\n\r\n"))
        let old = try conversation("GET / HTTP/1.0\r\n\r\n")
        expect(old.contains("\r\nConnection: close\r\n"))
        let kept = try conversation("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        expect(kept.contains("\r\nConnection: keep-alive\r\n"))
        let none = try conversation("GET /none HTTP/1.1\r\nHost: x\r\n\r\n")
        expect(none.hasSuffix("\r\n\r\n") && !none.contains("Content-Length"))
    }

    @Test(.served) func pipelinedRequestsAreAnsweredInOrder() throws {
        var count = 0
        try serve { request in
            count += 1
            let number = count
            // Every second one is answered later.
            return number % 2 == 0
                ? .later(after(.milliseconds(1)).map { Response("\(number);") }) : .now(Response("\(number);"))
        }
        let answers = try conversation(String(repeating: Self.get, count: 100))
        let bodies = answers.components("\r\n\r\n").dropFirst().map { $0.prefix { $0 != ";" } }
        expect(bodies == (1...100).map { Substring("\($0)") })
    }

    @Test(.served) func aHeadHasNothingOfTheOneBefore() throws {
        // The memory of a request is the next one's.
        try serve { request in .now(Response("<\(request.target) \(request.headers)>")) }
        let requests = [(300, 9), (3, 0), (0, 40), (40, 0), (40, 0), (0, 1000), (1, 1)].map { path, value in
            ("/" + String(repeating: "p", count: path), "Host: x\r\nX: \(String(repeating: "v", count: value))\r\n")
        }
        let answers = try conversation(requests.map { "GET \($0) HTTP/1.1\r\n\($1)\r\n" }.joined())
        let bodies = answers.components("<").dropFirst().map { $0.prefix { $0 != ">" } }
        expect(bodies == requests.map { Substring("\($0) \($1)") })
    }

    @Test(.served) func whatNoClientUnderstandsIsAnswered500() throws {
        try serve { request in
            switch request.path {
            case "/a": return .now(.stream(status: Status(102)) { $0.write("a") })
            case "/b": return .now(.stream(length: -1) { $0.write("a") })
            case "/c": return .now(Response(Status(100)))
            default:
                var upgrade = Response.upgrade(to: "x") { _ in .value }
                upgrade.status = .ok
                return .now(upgrade)
            }
        }
        let sent = ["GET /a", "HEAD /a", "GET /b", "HEAD /b", "GET /c", "GET /d"]
        try expect(sent.map { _ in 500 }, sent.map { "\($0) HTTP/1.1\r\nHost: x\r\n\r\n" }.joined())
        let expected: [ResponseError] = [
            .status(Status(102)), .status(Status(102)), .length(-1), .length(-1), .status(Status(100)), .status(.ok),
        ]
        expectEqual(errors.map { $0 as? ResponseError }, expected)
    }

    /// Its memory is reused for other requests. The first line may look like a field.
    @Test(.served) func aRequestThatIsKeptStaysAsItIs() throws {
        var kept: [Request] = []
        try serve { request in
            kept.append(request)
            return .now(Response(""))
        }
        _ = try conversation(
            "GET http://x/a?x=1 HTTP/1.1\r\nHost: x\r\nA:  1 \r\n\r\nPUT /b HTTP/1.1\r\nHost: x\r\na: 2\r\n\r\n"
                + "GET / HTTP/1.0\r\n\r\n")
        expect(kept.map(\.path) == ["/a", "/b", "/"] && kept.map(\.query) == ["x=1", nil, nil])
        expect(kept.map { $0.headers["a"] } == ["1", "2", nil] && kept.map(\.method) == [.get, .put, .get])
        expect(kept[0].headers.map(\.name).sorted() == ["A", "Host"] && kept[0].headers["GET http"] == nil)
        expect(kept[2].headers.isEmpty && kept[2].headers.description == "")
        let two: Headers = ["A": "1", "a": "2"]
        expectEqual(two["a"], "1", "the first of several")
        try endServer()
        hang(after(.milliseconds(1)))
        expect(kept.allSatisfy { $0.connection == nil })
        // Nothing may return an unowned reference to the memory.
        let parts = Mirror(reflecting: kept[0]).children
        expectEqual(parts.map(\.label), ["method", "target", "headers"])
    }

    /// By an idle client, by requests that the program keeps, and by none at all.
    @Test(.inRealTime) func aHandlerIsReleasedWithItsServer() throws {
        final class Kept { var requests: [Request] = [] }
        let tally = Tally()
        var kept: Kept? = Kept()
        weak let released = kept
        for keeps in [true, false, true] {
            try serveHTTP { [kept, token = tally.token()] listener in
                listener.serveHTTP { request in
                    withExtendedLifetime(token) { if keeps { kept?.requests.append(request) } }
                    return Response("")
                }
            }
            let clients = try (0..<2).map { _ in try connected() }
            for client in clients + clients { try hang(client.write(Self.get).then { client.read(until: "\r\n\r\n") }) }
            clients.forEach { $0.close() }
            try endServer()
        }
        kept = nil
        expect(released == nil && tally.alive == 0)
    }

    @Test(.served) func anErrorOfAHandlerIsAnswered() throws {
        struct Odd: Error {}
        try serve { request in
            switch request.path {
            case "/a": throw HTTPError(.forbidden)
            case "/b": throw Odd()
            case "/d": .later(request.json([Int].self).map { _ in Response("") })
            case "/e": .later(after(.seconds(9)).map { Response("") }.timeout(.seconds(1)))
            case "/f": throw HTTPError(.unauthorized, headers: ["WWW-Authenticate": "Basic"])
            case "/g": .now(.redirect(to: "/caf\u{E9} 1?a=\r\n%41"))
            default: .later(after(.milliseconds(1)).then { Promise<Response>(error: Odd()) })
            }
        }
        let paths = ["/a", "/b", "/c", "/d", "/e", "/f", "/g"]
        let answers = try conversation(paths.map { "GET \($0) HTTP/1.1\r\nHost: x\r\n\r\n" }.joined())
        expectEqual(statuses(answers), [403, 500, 500, 400, 503, 401, 303])
        expectEqual(errors.map { "\(type(of: $0))" }, ["Odd", "Odd", "PromiseError"])
        // The sentence of an error is sent, and its fields.
        expect(
            answers.contains(#"{"title":"Bad Request","status":400,"detail":"The body is not valid JSON."}"#), answers)
        expect(answers.contains("\r\nWWW-Authenticate: Basic\r\n"), answers)
        expect(answers.contains("\r\nLocation: /caf%C3%A9%201?a=%0D%0A%41\r\n"), answers)
    }

    @Test(.inRealTime) func anAsyncHandlerAnswers() throws {
        try serveHTTP { listener in
            listener.serveHTTP { request async throws in
                let text = try await request.body.text().value
                return Response("got \(text)")
            }
        }
        let answers = try conversation("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc" + Self.get)
        expect(answers.contains("got abc") && answers.hasSuffix("got "))
    }

    // MARK: Expect: 100-continue

    /// `100 Continue` must not appear inside a response.
    @Test(.served, arguments: [true, false]) func aBodyThatIsReadBehindTheFirstWriteIsNotAskedFor(_ isTouched: Bool)
        throws
    {
        try serve { request in
            if isTouched { _ = request.body }
            return .now(
                .stream { output in
                    output.write("a").then { request.body.text() }.then { output.write($0) }
                })
        }
        let client = try connected()
        _ = try hang(client.write(Self.waiting).then { client.read(until: "1\r\na\r\n") }, timeout: patience)
        try hang(client.write("hello").then { client.shutdownWrite() }, timeout: patience)
        expectEqual(try readToEnd(client), "5\r\nhello\r\n0\r\n\r\n")
    }

    @Test(.served) func aClientThatWaitsToSendIsAskedAndKept() throws {
        try serve { request in
            let body = request.body
            return .now(.stream(length: body.length) { output in body.forEach { output.write($0) } })
        }
        let client = try connected()
        let first = try hang(client.write(Self.waiting).then { client.read(until: "\r\n\r\n") }, timeout: patience)
        expectEqual(first.map { String(decoding: $0, as: UTF8.self) }, "HTTP/1.1 100 Continue")
        try hang(client.write("hello" + Self.get).then { client.shutdownWrite() }, timeout: patience)
        let rest = try readToEnd(client)
        expect(statuses(rest) == [200, 200] && rest.contains("\r\n\r\nhello"))
    }

    /// The client may or may not send the body then, so the start of its next request is unknown.
    @Test(.served, arguments: [true, false]) func nothingFollowsABodyThatWasNotAskedFor(_ isTouched: Bool) throws {
        try serve { request in
            if isTouched { _ = request.body }
            return .now(.stream { $0.write("a") })
        }
        for next in ["", Self.get] {
            let answer = try conversation(Self.waiting + next)
            expect(isTouched || answer.contains("\r\nConnection: close\r\n"))
            expect(statuses(answer) == [200] && answer.hasSuffix("\r\n\r\n1\r\na\r\n0\r\n\r\n"))
        }
    }

    // MARK: Bodies

    @Test(.served) func aBodyCannotBeReadBehindItsResponse() throws {
        var kept: [Request] = []
        try serve { request in
            kept.append(request)
            return .now(.stream { $0.write("a") })
        }
        _ = try conversation("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\na")
        expectEqual(kept[0].body.isComplete, false)
        #expect(throws: BodyError.unreadable) { _ = try hang(kept[0].body.bytes()) }
    }

    @Test(.served) func aBodyIsReadInPartsAndHasTrailers() throws {
        try serve { request in
            var count = 0
            return .later(
                request.body.forEach { part in
                    count += part.count
                    if part.contains(UInt8(ascii: "!")) { throw HTTPError(.forbidden) }
                }.map { Response("\(count) \(request.body.trailers["check"] ?? "none")") })
        }
        let head = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        let counted = try conversation(head + "3\r\nabc\r\n2\r\nde\r\n0\r\nCheck: sum \r\n\r\n")
        expect(counted.hasSuffix("\r\n\r\n5 sum"))
        try expect([403], head + "1\r\n!\r\n0\r\n\r\n")
    }

    @Test(.served) func aHandlerChoosesTheLimitOfItsBody() throws {
        var options = HTTPOptions()
        options.maxBody = 4
        try serve(limits: options) { request in
            if request.path == "/more" { request.body.limit = 8 }
            return .later(request.body.text().map { Response($0) })
        }
        func post(_ path: String, _ body: String) -> String {
            "POST \(path) HTTP/1.1\r\nHost: x\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
        }
        try expect([200, 200], post("/", "1234") + post("/more", "12345678"))
        try expect([413], post("/", "12345"))
        try expect([413], post("/more", "123456789"))
    }

    // MARK: Streams

    @Test(.served) func nothingIsWrittenBehindTheEndOfAStream() throws {
        var outputs: [BodyOutput] = []
        var refused = 0
        try serve { _ in
            // A write that comes too late, with the next request in progress.
            outputs.last?.write("late").catch { _ in refused += 1 }
            return .now(
                .stream { output in
                    outputs.append(output)
                    return output.write("a")
                })
        }
        let answers = try conversation(Self.get + Self.get)
        expect(!answers.contains("late") && refused == 1)
        expect(answers.hasSuffix("\r\n\r\n1\r\na\r\n0\r\n\r\n"))
    }

    @Test(.served) func aStreamIsSentInChunksWithTrailers() throws {
        try serve { _ in
            .now(
                .stream { output in
                    output.write("abc").then { output.write("0123456789abcdef") }.done { output.trailers["T"] = "x" }
                })
        }
        let answer = try conversation(Self.get)
        expect(answer.hasSuffix("\r\n\r\n3\r\nabc\r\n10\r\n0123456789abcdef\r\n0\r\nT: x\r\n\r\n"))
        let old = try conversation("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        expect(old.contains("Connection: close\r\n") && old.hasSuffix("\r\n\r\nabc0123456789abcdef"))
    }

    @Test(.served) func aStreamThatFailsIsNoWholeResponse() throws {
        struct Odd: Error {}
        try serve { request in
            let isLate = request.path == "/late"
            return .now(.stream { output in isLate ? output.write("a").done { throw Odd() } : Promise(error: Odd()) })
        }
        try expect([500, 500], Self.get + Self.get)
        let late = try conversation("GET /late HTTP/1.1\r\nHost: x\r\n\r\n" + Self.get)
        expect(statuses(late) == [200] && late.hasSuffix("1\r\na\r\n"))
    }

    @Test(.served) func aStreamKeepsToItsLength() throws {
        try serve { request in
            .now(.stream(length: 3) { output in output.write(request.path == "/long" ? "abcd" : "ab") })
        }
        let short = try conversation(Self.get + Self.get)
        expect(statuses(short) == [200] && short.hasSuffix("Content-Length: 3\r\n\r\nab"))
        try expect([500], "GET /long HTTP/1.1\r\nHost: x\r\n\r\n")
    }

    // MARK: Upgrade

    private static func lines(_ request: Request) -> Answer {
        guard request.headers.has("Upgrade", listing: "lines") else { return .now(Response("")) }
        return .now(.upgrade(to: "lines") { connection in connection.forEachLine { connection.write("<\($0)>") } })
    }

    @Test(.served) func anUpgradeHandsOverTheConnectionWithWhatFollows() throws {
        try serve(Self.lines)
        let answers = try conversation(
            Self.get + "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: lines\r\n\r\n"
                + "first\nGET / HTTP/1.1\n")
        expectEqual(statuses(answers), [200, 101])
        expect(answers.hasSuffix("Connection: Upgrade\r\nUpgrade: lines\r\n\r\n<first><GET / HTTP/1.1>"))
    }

    /// RFC 9110, section 7.8: the other protocol begins after the whole request, and a waiting client is asked to send
    /// it.
    @Test(.served, arguments: [false, true]) func anUpgradeBeginsBehindTheBody(_ waits: Bool) throws {
        let fields = "Upgrade: lines\r\nContent-Length: 5\r\n" + (waits ? "Expect: 100-continue\r\n" : "")
        try serve(Self.lines)
        let client = try connected()
        try hang(client.write("GET / HTTP/1.1\r\nHost: x\r\n\(fields)\r\n"), timeout: patience)
        if waits {
            let asked = try hang(client.read(until: "\r\n\r\n"), timeout: patience) ?? []
            expect(String(decoding: asked, as: UTF8.self).hasPrefix("HTTP/1.1 100 "))
        }
        try hang(client.write("a\nb\ncd\n").then { client.shutdownWrite() }, timeout: patience)
        let answer = try readToEnd(client)
        expectEqual(statuses(answer), [101])
        expect(answer.hasSuffix("\r\n\r\n<d>"))
    }

    @Test(.served) func behindARefusedUpgradeTheNextRequestIsRead() throws {
        try serve { _ in Answer.now(.upgrade(to: "x") { _ in .value }) }
        let kept = "GET / HTTP/1.0\r\nConnection: keep-alive\r\n"
        try expect([426, 426], kept + "Content-Length: 4\r\n\r\na b " + kept + "\r\n")
    }

    /// The next request cannot be read, but the response can be sent.
    @Test(.served, arguments: [false, true]) func aResponseDoesNotWaitForAReadOfTheHandler(_ isStream: Bool) throws {
        var failures = 0
        try serve { request in
            request.body.read().catch(policy: .allErrors) { _ in failures += 1 }
            return .now(isStream ? .stream { $0.write("early") } : Response("early"))
        }
        let client = try connected()
        try hang(client.write("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n"), timeout: patience)
        let answer = try readToEnd(client)
        expect(statuses(answer) == [200] && answer.contains("early"))
        try endServer()
        expect(failures == 1 && errors.isEmpty)
    }

    // MARK: The end

    @Test(.served) func aDrainLetsARequestBeAnswered() throws {
        let (gate, open) = Guarantee<Void>.pending()
        var begun = false
        try serve { _ in
            begun = true
            return .later(gate.map { Response("done") }.asPromise())
        }
        let client = try connected()
        try hang(client.write(Self.get))
        try EventLoop.current.run(until: { begun })
        listener.drain(deadline: .seconds(20))
        open(())
        let answer = try readToEnd(client)
        expect(answer.contains("Connection: close\r\n") && answer.hasSuffix("done"))
    }

    @Test(.served) func aDrainInsideAStreamLetsItEnd() throws {
        let (gate, open) = Guarantee<Void>.pending()
        try serve { _ in
            .now(.stream { output in output.write("a").then { gate.asPromise() }.then { output.write("b") } })
        }
        let client = try connected()
        _ = try hang(client.write(Self.get + Self.get).then { client.read(until: "1\r\na\r\n") }, timeout: patience)
        let drained = listener.drain(deadline: .seconds(20))
        open(())
        // The first answer could not announce the end any more, so the second request is answered, too.
        let rest = try readToEnd(client).components("HTTP/1.1 200 OK\r\n")
        expectEqual(rest[0], "1\r\nb\r\n0\r\n\r\n")
        expect(rest.count == 2 && rest[1].contains("Connection: close\r\n") && rest[1].hasSuffix("b\r\n0\r\n\r\n"))
        client.close()
        let result = try hang(drained.asPromise(), timeout: patience)
        expectEqual(result.aborted, 0)
    }

    // MARK: Clients that keep a server busy

    /// The first of several writes of a stream that do not wait for each other has been taken.
    @Test(.inLoop, arguments: [false, true]) func aClientThatDoesNotReadIsGivenUp(_ isStream: Bool) throws {
        var options = HTTPOptions()
        options.idle = .seconds(5)
        let part = [UInt8](repeating: 0, count: 1 << 20)
        let client = try serveClient(limits: options) { _ in
            if !isStream { return .now(Response(part)) }
            return .now(
                .stream(length: 3 << 20) { output in
                    output.write(part)
                    output.write(part)
                    return output.write(part)
                })
        }
        try hang(client.write(String(repeating: Self.get, count: 10)))
        if isStream { _ = try hang(client.read(exactly: 1_500_000)) }
        try hang(served, timeout: .seconds(20))
    }

    /// A decoder that failed inside a part must not see its bytes again: the rest would be taken for requests.
    @Test(.served) func nothingIsReadBehindABodyThatHasFailed() throws {
        try serve { request in
            let again = { request.body.text().recover { .value("\($0 as? BodyError == .unreadable)") } }
            return .later(request.body.text().recover { _ in again() }.map { Response($0) })
        }
        let answer = try conversation(
            "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n0\r\n\r\nx\r\n" + Self.get)
        expect(statuses(answer) == [200] && answer.hasSuffix("true"))
        expect(answer.contains("Connection: close\r\n"))
    }

    /// A byte now and then extends neither the time for a head nor for a body.
    @Test(
        .inLoop,
        arguments: ["GET / HTTP/1.1\r\nHost: x\r\nA: ", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n"],
        [false, true])
    func aSlowRequestIsAnswered408(_ sent: String, trickles: Bool) throws {
        let client = try serveClient(echo)
        try hang(client.write(sent))
        let begin = EventLoop.current.now
        let trickle = repeatWhile { after(.seconds(1)).then { client.write("a") }.map { trickles } }
        let answer = try hang(client.receive(), timeout: .seconds(3600))
        trickle.cancel()
        expectEqual(statuses(String(decoding: answer, as: UTF8.self)), [408])
        expect(begin.duration(to: EventLoop.current.now) <= .seconds(35))
    }

    /// The handler takes longer than any limit for clients.
    @Test(.inLoop) func aSilentClientSeesTheEnd() throws {
        let client = try serveClient { _ in .later(after(.seconds(600)).map { Response("late") }) }
        try hang(client.write(Self.get))
        let answer = try readToEnd(client)
        expect(answer.hasSuffix("late") && statuses(answer) == [200])
    }
}
