/// The handler's response is sent, whatever happens to a body that it has not read: it may have done its work.
struct UnreadBodyTests {
    enum Kind: CaseIterable { case now, later, noBody, stream, readInPart, error }

    private static func answer(_ kind: Kind, _ request: Request) -> Answer {
        switch kind {
        case .now: .now(Response("done", status: Status(201)))
        case .later: .later(after(.milliseconds(1)).map { Response("done", status: Status(201)) })
        case .noBody: .now(Response(.noContent))
        case .stream: .now(.stream(status: Status(201), length: 4) { $0.write("done") })
        case .readInPart:
            .later(request.body.read().recover { _ in .value(nil) }.map { _ in Response("done", status: Status(201)) })
        case .error: .later(after(.milliseconds(1)).then { Promise(error: HTTPError(Status(401))) })
        }
    }

    private static func status(_ kind: Kind) -> Int { kind == .noBody ? 204 : kind == .error ? 401 : 201 }

    static let chunked = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"

    /// Bodies that cannot be skipped: too long, broken, or ending early. In one part, and in two.
    @Test(
        .served,
        arguments: Kind.allCases,
        [
            (chunked, "2\r\nab\r\n" + "64\r\n" + String(repeating: "x", count: 100) + "\r\n0\r\n\r\n"),
            (chunked, "2\r\nab\r\n" + "broken\r\n"), (chunked, "2\r\nab\r\n" + "0\r\nbroken\r\n\r\n"),
            (chunked, "2\r\nab\r\n" + "2\r\nab"), (chunked, "2\r\nabc\r\n" + "0\r\n\r\n"),
            ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 101\r\n\r\n", "ab" + String(repeating: "x", count: 99)),
            ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 45\r\n\r\n", "ab"),
            ("POST / HTTP/1.0\r\nContent-Length: 45\r\n\r\n", "ab"),
        ])
    func doesNotChangeTheAnswer(_ kind: Kind, _ sent: (head: String, body: String)) throws {
        var options = HTTPOptions()
        options.maxBody = 50
        try serve(limits: options) { Self.answer(kind, $0) }
        for parts in [[sent.head + sent.body + ServerTests.get], [sent.head, sent.body + ServerTests.get]] {
            let client = try connected()
            for part in parts { try hang(client.write(part).then { after(.milliseconds(5)) }, timeout: patience) }
            try hang(client.shutdownWrite(), timeout: patience)
            let answer = try readToEnd(client)
            // The bytes after such a body are not taken for a request.
            expectEqual(statuses(answer), [Self.status(kind)], "\(answer)")
            expect(kind == .noBody || kind == .error || answer.hasSuffix("done"))
        }
    }

    /// A limit that the handler raises is one of its own reads.
    @Test(.served) func theRestIsLimitedByTheServer() throws {
        var options = HTTPOptions()
        options.maxBody = 50
        try serve(limits: options) { request in
            request.body.limit = 1000
            return .now(Response("done"))
        }
        let body = "64\r\n" + String(repeating: "x", count: 100) + "\r\n0\r\n\r\n"
        expectEqual(statuses(try conversation(Self.chunked + body + ServerTests.get)), [200])
    }

    /// A read that is cancelled when a part has arrived, or before the rest has: the next one gets it.
    @Test(.inLoop, arguments: [false, true], [false, true])
    func bytesOfACancelledReadAreLeft(first isWhole: Bool, next isNextWhole: Bool) throws {
        for isComplete in [false, true] {
            let (control, other) = try Connection.pair()
            let client = try serveClient { request in
                func read(_ isWhole: Bool) -> Promise<[UInt8]> {
                    isWhole ? request.body.bytes() : request.body.read().map { $0 ?? [] }
                }
                let first = read(isWhole)
                let cancelled = other.read().done { _ in first.cancel() }
                return .later(cancelled.then { read(isNextWhole) }.map { Response($0) })
            }
            let length = isComplete ? 4 : 6
            try hang(client.write("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: \(length)\r\n\r\n"))
            hang(after(.seconds(1)))
            for (connection, text) in [(control, "x"), (client, "body")] { connection.write(text).cauterize() }
            hang(after(.seconds(1)))
            if !isComplete { client.write("--").cauterize() }
            _ = try hang(client.read(until: "\r\n\r\n"), timeout: .seconds(5))
            let body = isComplete || !isNextWhole ? "body" : "body--"
            expectEqual(try hang(client.read(exactly: body.utf8.count), timeout: .seconds(5)), Array(body.utf8))
            for connection in [control, other] { connection.abort() }
        }
    }

    /// A body that has arrived with its head is there at once, and what follows it is the next request.
    @Test(.inLoop, arguments: ["", "bo", "body"], [false, true])
    func aBodyThatHasArrivedNeedsNoWait(_ arrived: String, isWhole: Bool) throws {
        var wereThere: [Bool] = []
        let client = try serveClient { request in
            var parts: [UInt8] = []
            let all = isWhole ? request.body.bytes() : request.body.forEach { parts += $0 }.map { parts }
            wereThere.append(isWhole ? all.isFulfilled : parts.count == 4)
            return .later(all.map { Response($0) })
        }
        let head = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n"
        try hang(client.write(head + arrived))
        hang(after(.seconds(1)))
        try hang(client.write("body".dropFirst(arrived.count) + head + "next"))
        for body in ["body", "next"] {
            _ = try hang(client.read(until: "\r\n\r\n"), timeout: .seconds(5))
            expectEqual(try hang(client.read(exactly: 4), timeout: .seconds(5)), Array(body.utf8))
        }
        expectEqual(wereThere, [arrived == "body", true])
    }

    /// A second read, while the first waits for the rest or is about to get all that has arrived.
    @Test(.inLoop, arguments: [["body"], ["bo", "dy"], ["b", "o", "dy"]])
    func aSecondReadTakesNothingOfTheFirst(_ parts: [String]) throws {
        var second: Promise<[UInt8]?>?
        let client = try serveClient { request in
            let first = request.body.bytes()
            if parts.count == 1 { second = request.body.read() }
            let later = after(.seconds(1)).then { () -> Promise<[UInt8]> in
                second = second ?? request.body.read()
                return first
            }
            return .later(later.map { Response($0) })
        }
        try hang(client.write("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n" + parts[0]))
        for part in parts.dropFirst() { try hang(after(.seconds(2)).then { client.write(part) }) }
        _ = try hang(client.read(until: "\r\n\r\n"), timeout: .seconds(5))
        expectEqual(try hang(client.read(exactly: 4), timeout: .seconds(5)), Array("body".utf8))
        expectEqual(second?.isRejected, parts.count > 1)
        second?.catch(policy: .allErrors) { _ in }
    }

    /// Reads of one caller too many end neither the body of a response nor its connection.
    @Test(.inLoop) func aSecondReadOfAResponseIsRefused() throws {
        try servePeer { _, connection in
            forEach(["HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nab", "cd", "ef"]) { part in
                connection.write(part).then { after(.seconds(1)) }
            }
        }
        for _ in 0..<2 {
            let body = try hang(client.fetch("http://\(address)/")).body
            let first = body.bytes()
            for second in [body.read().asVoid(), body.bytes().asVoid(), body.forEach { _ in }] {
                let error = #expect(throws: SystemError.self) { try hang(second, timeout: .seconds(1)) }
                expectEqual(error?.code, EBUSY)
            }
            expectEqual(try hang(first, timeout: .seconds(9)), Array("abcdef".utf8))
            expectEqual(listener.activeConnections, 1)
            hang(after(.seconds(2)))
        }
    }

    /// What counts against a limit is what is left.
    @Test(.inLoop, arguments: ["Content-Length: 190", "Transfer-Encoding: chunked", "A: b"])
    func bytesBehindReadsHasItsOwnLimit(_ field: String) throws {
        let part = [UInt8](repeating: 0x61, count: 95)
        let framed = field.hasSuffix("chunked") ? Array("5f\r\n".utf8) + part + Array("\r\n".utf8) : part
        try servePeer { connection in
            connection.read(until: "\r\n\r\n").then { _ in connection.write("HTTP/1.1 200 OK\r\n\(field)\r\n\r\n") }
                .then { connection.write(framed) }.then { after(.seconds(1)) }
                .then { connection.write(framed + (framed == part ? [] : Array("0\r\n\r\n".utf8))) }
        }
        for limit in [95, 94] {
            var options = HTTPClient.Options()
            options.maxBody = limit
            let body = try hang(HTTPClient(options).fetch("http://\(address)/")).body
            expectEqual(try hang(body.read()), part)
            let rest = body.bytes()
            if limit == 95 {
                expectEqual(try hang(rest, timeout: .seconds(9)), part)
            } else {
                #expect(throws: HTTPError.self) { try hang(rest, timeout: .seconds(9)) }
            }
        }
    }

    @Test(.inLoop, arguments: Kind.allCases) func isNotWaitedFor(_ kind: Kind) throws {
        if kind == .readInPart { return }
        let client = try serveClient { Self.answer(kind, $0) }
        try hang(client.write("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 500000\r\n\r\n"))
        let begin = EventLoop.current.now
        let head = try hang(client.read(until: "\r\n\r\n"), timeout: .seconds(3600)) ?? []
        expectEqual(statuses(String(decoding: head, as: UTF8.self)), [Self.status(kind)])
        expect(begin.duration(to: EventLoop.current.now) < .seconds(1))
        if kind == .now || kind == .later || kind == .stream { _ = try hang(client.read(exactly: 4)) }
        // The rest from the client is skipped, and its next request answered.
        let rest = [UInt8](repeating: 0x61, count: 500_000)
        try hang(client.write(rest).then { client.write(ServerTests.get) }.then { client.shutdownWrite() })
        let answers = try readToEnd(client)
        expectEqual(statuses(answers), [Self.status(kind)])
    }

    /// A client that first sends its whole body, and then reads a response that is as long.
    @Test(.served) func isSkippedWhileTheResponseIsSent() throws {
        var options = HTTPOptions()
        options.maxBody = 16 << 20
        let large = [UInt8](repeating: 0x62, count: 16 << 20)
        try serve(limits: options) { _ in .now(Response(large)) }
        let client = try connected()
        let head = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: \(16 << 20)\r\n\r\n"
        try hang(client.write(head).then { client.write(large) }, timeout: patience)
        var count = 0
        let read = client.write(ServerTests.get).then { client.shutdownWrite() }.then {
            client.forEachChunk { count += $0.byteCount }
        }
        try hang(read, timeout: patience)
        expect(count > 2 * large.count)
    }

    /// As slowly as a client may send it.
    @Test(.inLoop, arguments: [false, true]) func endsTheConnectionIfItDoesNotArriveInTime(trickles: Bool) throws {
        let client = try serveClient { _ in .now(Response("done")) }
        let begin = EventLoop.current.now
        try hang(client.write("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 500000\r\n\r\n"))
        var isEnded = false
        let answer = client.receiveAll().ensure { isEnded = true }
        let trickle = repeatWhile {
            after(.seconds(1)).then { client.write("a") }.map { trickles && !isEnded }.recover { _ in .value(false) }
        }
        let text = String(decoding: try hang(answer, timeout: .seconds(3600)), as: UTF8.self)
        trickle.cancel()
        expect(statuses(text) == [200] && text.hasSuffix("done"))
        expect(begin.duration(to: EventLoop.current.now) < .seconds(trickles ? 100 : 33))
    }

    @Test(.served) func isNotWaitedForByADrain() throws {
        try serve { _ in .now(Response("done")) }
        let client = try connected()
        let sent = client.write("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 500000\r\n\r\n")
        _ = try hang(sent.then { client.read(until: "done") }, timeout: patience)
        let drained = listener.drain(deadline: .seconds(20))
        expectEqual(try hang(client.write("a").then { client.receiveAll() }, timeout: patience), [])
        client.close()
        let result = try hang(drained.asPromise(), timeout: patience)
        expectEqual(result.aborted, 0)
    }
}
