struct AccessLogTests {
    private static let get = ServerTests.get

    @Test(.served) func aLineNamesTheClientTheRequestAndTheStatus() throws {
        var options = HTTPOptions()
        let lines = Shared<[String]>([])
        options.log = { request in
            let line = "\(request)"
            lines.change { $0.append(line) }
        }
        try serve(limits: options) { request in
            if request.path == "/id" { request.id = "a\n1" }
            return .now(Response(""))
        }
        _ = try conversation(Self.get.replacing(" / ", with: " /id ") + Self.get + "GET /\u{1}\r\n\r\n")
        expectEqual(lines.value.count, 3)
        let named = lines.change { $0.removeFirst() }
        expect(named.contains(" GET /id 200 ") && named.hasSuffix(" seconds a\\n1"), named)
        expect(lines.value[0].hasPrefix("127.0.0.1:") && lines.value[0].contains(" GET / 200 "))
        expect(lines.value[1].contains(" - 400 "))
    }

    @Test(.inRealTime) func aLineTellsHowLongItTook() throws {
        var options = HTTPOptions()
        let durations = Shared<[Duration]>([])
        options.log = { request in
            let duration = request.duration
            durations.change { $0.append(duration) }
        }
        try serve(limits: options) { _ in .later(after(.milliseconds(20)).map { Response("") }.asPromise()) }
        let began = ContinuousClock.now
        _ = try conversation(Self.get)
        let possible = .milliseconds(20)...(ContinuousClock.now - began)
        expect(durations.value.count == 1 && durations.value.allSatisfy(possible.contains), "\(durations.value)")
    }

    /// Part of the stream has been sent. A client that leaves is no error of the server.
    @Test(.served, arguments: [false, true]) func aStreamThatFailsIsLogged(_ leaves: Bool) throws {
        try serve(limits: logging()) { request in
            let connection = request.connection!
            return .now(
                .stream { output in
                    output.write("a").then { () -> Promise<Void> in
                        if !leaves { throw BodyError.endedEarly }
                        return connection.cancelWhenPeerGone { after(.seconds(3600)).asPromise() }
                    }
                })
        }
        _ = try conversation(Self.get)
        try endServer()
        expect(logged == ["/ 200"] && errors.count == (leaves ? 0 : 1))
    }

    @Test(.served) func aResponseIsLoggedWhenItHasBeenSent() throws {
        try serve(limits: logging()) { _ in .now(Response([UInt8](repeating: 0, count: 8 << 20))) }
        let client = try connected()
        _ = try hang(client.write(Self.get).then { client.read(exactly: 1) }, timeout: patience)
        expect(logged.isEmpty)
        client.abort()
        try EventLoop.current.run(until: { !logged.isEmpty })
        expectEqual(logged, ["/ 200"])
    }

    enum Handler: CaseIterable { case promise, task, stream, body, limitOfTheListener }
    enum End { case close, reset, drain }

    /// As in nginx.
    @Test(
        .inRealTime,
        arguments: Handler.allCases.flatMap { [($0, End.close), ($0, .reset)] }
            + [(.promise, .drain), (.task, .drain), (.stream, .drain), (.limitOfTheListener, .drain)])
    func aClientThatLeavesBeforeItsResponseIsLogged(_ kind: Handler, _ end: End) throws {
        var begun = false
        let never = { after(.seconds(3600)).asPromise() }
        if kind == .task {
            let (options, forever) = (logging(), never())
            try serveHTTP { listener in
                listener.serveHTTP(options, serving: ServeOptions(cancelsWhenPeerGone: true)) { _ async throws in
                    begun = true
                    try await forever.value
                    return Response("")
                }
            }
        } else {
            let cancels = kind == .limitOfTheListener || kind == .body
            try serve(limits: logging(), serving: ServeOptions(cancelsWhenPeerGone: cancels)) { request in
                begun = true
                let connection = request.connection!
                switch kind {
                case .promise: return .later(connection.cancelWhenPeerGone(never).map { Response("") })
                case .stream: return .now(.stream { _ in connection.cancelWhenPeerGone(never) })
                case .body: return .later(request.body.text().map { Response($0) })
                default: return .later(never().map { Response("") })
                }
            }
        }
        let client = try connected()
        try hang(client.write(kind == .body ? ClientFaultTests.post : Self.get), timeout: patience)
        try EventLoop.current.run(until: { begun })
        expect(logged.isEmpty)
        switch end {
        case .close: client.close()
        case .reset: client.abort()
        case .drain: listener.drain(deadline: .zero)
        }
        try endServer()
        // A client that half-closes may still read.
        expectEqual(logged, [kind == .body && end == .close ? "/ 400" : "/ 499"])
        expect(errors.isEmpty)
    }
}
