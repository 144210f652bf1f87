@Suite(.serialized) struct ClientTests {
    @Test(.served) func fetchesWithMethodFieldsAndBody() throws {
        try serve { request in
            .later(
                request.body.text().map { text in
                    Response(
                        "\(request.method) \(request.target) \(request.headers["x-a"] ?? "-") \(text)",
                        status: request.path == "/a" ? .created : .notFound, headers: ["X-B": "2"])
                })
        }
        let response = try hang(
            client.fetch("http://\(address)/a?b=c#d", .put, headers: ["X-A": "1"], body: .text("text")),
            timeout: patience)
        expect(response.status == .created && response.headers["x-b"] == "2")
        let text = try hang(response.body.text(), timeout: patience)
        expectEqual(text, "PUT /a?b=c 1 text")
        expectEqual(try response.validated().status, .created)
        let missing = try hang(client.fetch("http://\(address)/"), timeout: patience)
        #expect(throws: HTTPError(.notFound)) { try missing.validated() }
    }

    @Test(arguments: [
        ("", "\(FetchError.endedEarly)"), ("H", "\(FetchError.endedEarly)"),
        ("HTTP/1.1 200 x\r\nA", "\(FetchError.endedEarly)"), ("HTTP/1.1 200 x\r\nA: b\r\n", "\(FetchError.endedEarly)"),
        ("HTTP/1.1 103 x\r\n\r\n", "\(FetchError.endedEarly)"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc", "\(BodyError.endedEarly)"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", "\(BodyError.endedEarly)"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r", "\(BodyError.endedEarly)"),
    ])
    func aResponseThatEndsEarlyIsNoWholeOne(_ answer: String, _ error: String) throws {
        do {
            let got = try fetched(answer)
            Issue.record("\(got)")
        } catch let found { expectEqual("\(found)", error) }
    }

    @Test(.inRealTime) func aStaleConnectionIsReplacedForAnIdempotentRequest() throws {
        var ports: Set<UInt16> = []
        // Ends each connection in the middle of its second request.
        try servePeer { _, connection in
            if !ports.insert(connection.peerAddress!.port).inserted { throw StopReading() }
            return connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        }
        func text(_ method: Method) throws -> String {
            try hang(client.fetch("http://\(address)/", method).then { $0.body.text() }, timeout: patience)
        }
        let texts = [try text(.get), try text(.get), try text(.get)]
        expect(texts == ["ok", "ok", "ok"] && ports.count == 3)
        #expect(throws: (any Error).self) { _ = try text(.post) }
    }

    @Test(.served) func aLargeBodyIsStreamedWithBackpressure() throws {
        let part = [UInt8](repeating: 7, count: 65_536)
        var written = 0
        try serve { _ in
            .now(
                .stream { output in
                    func more() -> Promise<Void> {
                        written += 1
                        return written < 200 ? output.write(part).then { more() } : .value
                    }
                    return more()
                })
        }
        let response = try hang(client.fetch("http://\(address)/"), timeout: patience)
        _ = try hang(after(.milliseconds(50)).asPromise(), timeout: patience)
        // Nobody reads: the kernel's buffers are full, and the writer waits.
        expect(written < 200)
        let count = try hang(response.body.bytes(), timeout: patience).count
        expectEqual(count, 199 * 65_536)
    }

    @Test(.served) func tlsIsAClosureOfTheProgram() throws {
        try serve { _ in .now(Response("secure")) }
        let error = #expect(throws: FetchError.noTLS("\(address)")) {
            _ = try hang(client.fetch("https://\(address)/"))
        }
        expectEqual(error?.description.contains("HTTPClient.defaultOptions.startTLS = {"), true)
        let names = Shared<[String]>([])
        HTTPClient.defaultOptions.startTLS = { connection, host in
            names.change { $0.append(host) }
            return .value(connection)
        }
        defer { HTTPClient.defaultOptions = HTTPClient.Options() }
        let text = try hang(fetch("https://\(address)/").then { $0.body.text() }, timeout: patience)
        expect(text == "secure" && names.value == ["127.0.0.1"])
    }
}
