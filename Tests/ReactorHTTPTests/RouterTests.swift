import ReactorHTTPJSON

/// Services called without a socket.
struct RouterTests {
    private struct Odd: Error {}

    /// Each handler answers with its name, and with the parameters.
    private static func service() -> Router {
        let service = Router()
        func on(_ method: ReactorHTTP.Method, _ path: String) {
            service.on(method, path) { request in
                let parameters = ["id", "name", "rest"].compactMap { request.pathParameters[$0] }
                return Response(([path] + parameters).joined(separator: " "))
            }
        }
        for path in [
            "/", "/users", "/users/me", "/users/{id}", "/users/{id}/posts/{name}", "/caf\u{E9}", "/files/{rest...}",
        ] { on(.get, path) }
        on(.post, "/users")
        on(.delete, "/users/{id}")
        on(.head, "/head")
        on("REPORT", "/users/{name}")
        on(.get, "/{name}/posts")
        return service
    }

    @Test(.ownThread) func aPathThatNoRequestCanHaveEndsTheProgram() async {
        await #expect(processExitsWith: .failure) { Router().on(.get, "/{rest...}/b") { _ in Response("") } }
        await #expect(processExitsWith: .failure) { Router().on(.get, "/a{b}") { _ in Response("") } }
        await #expect(processExitsWith: .failure) { Router().on(.get, "a") { _ in Response("") } }
        await #expect(processExitsWith: .failure) { _ = Router().group("a") { $1($0) } }
    }

    private func text(_ response: Response) throws -> String {
        try hang(#require(response.body).text(), timeout: patience)
    }

    @Test(
        .inRealTime,
        arguments: [
            ("GET", "/", "/"), ("GET", "/?a=/users", "/"), ("GET", "http://x/users", "/users"),
            ("GET", "http://x", "/"),
            ("POST", "/users", "/users"), ("GET", "/users/me", "/users/me"), ("GET", "/users/7", "/users/{id} 7"),
            ("GET", "/users/m%65", "/users/me"), ("DELETE", "/users/me", "/users/{id} me"),
            ("REPORT", "/users/me", "/users/{name} me"), ("GET", "/users/a%2Fb", "/users/{id} a/b"),
            ("GET", "/users/posts", "/users/{id} posts"), ("GET", "/users/1/posts/2", "/users/{id}/posts/{name} 1 2"),
            ("GET", "/x/posts", "/{name}/posts x"), ("GET", "/caf%C3%A9", "/caf\u{E9}"),
            ("GET", "/files/a/b%2F/", "/files/{rest...} a/b%2F/"), ("GET", "/files/", "/files/{rest...} "),
            ("HEAD", "/users", "/users"), ("HEAD", "/head", "/head"),
            // Those that match nothing.
            ("GET", "/none", nil), ("GET", "/users/", nil), ("GET", "//users", nil), ("GET", "/users//posts/2", nil),
            ("GET", "/USERS", nil), ("GET", "/cafe%CC%81", nil), ("GET", "/caf%E9", nil), ("GET", "/users/%FF", nil),
            ("GET", "/users/%zz", nil), ("GET", "/users/..", nil), ("GET", "/users/%2e%2E", nil),
            ("GET", "/files/a/./b", nil), ("GET", "/users/..%2F..%2Fetc", nil), ("GET", "/users/a%2f.", nil),
            ("GET", "/users/%2E%2e%2Fx", nil), ("GET", "/files/a/b%2F..%2Fc", nil),
            ("GET", "/users/...", "/users/{id} ..."), ("GET", "/users/a%2F.b", "/users/{id} a/.b"),
            ("GET", "/files", nil), ("OPTIONS", "*", nil), ("GET", "*", nil),
        ] as [(String, String, String?)])
    func aRequestFindsItsHandler(_ method: String, _ target: String, _ expected: String?) throws {
        let request = try Request(ReactorHTTP.Method(method), target)
        let response = try hang(Self.service().respond(to: request).promise, timeout: patience)
        let text = try text(response)
        guard let expected else {
            expect(response.status == .notFound && text == #"{"title":"Not Found","status":404}"#)
            expectEqual(response.contentType, "application/problem+json")
            return
        }
        expect(response.status == .ok && text == expected)
    }

    @Test(
        .inRealTime,
        arguments: [
            ("PUT", "/users", "GET, HEAD, POST"), ("POST", "/users/me", "DELETE, GET, HEAD, REPORT"),
            ("OPTIONS", "/users/7", "DELETE, GET, HEAD, REPORT"), ("GET", "/head", "HEAD"),
            ("POST", "/users/1/posts/2", "GET, HEAD"), ("PUT", "/files/x", "GET, HEAD"),
        ])
    func anotherMethodIsRefusedWithThoseOfThePath(_ method: String, _ path: String, _ allowed: String) throws {
        let request = try Request(ReactorHTTP.Method(method), path)
        let response = try hang(Self.service().respond(to: request).promise, timeout: patience)
        expect(response.status == .methodNotAllowed && response.headers["allow"] == allowed)
        expectEqual(response.contentType, "application/problem+json")
    }

    // MARK: Groups

    @Test(.inRealTime) func aGroupRunsAroundItsHandlers() throws {
        var steps: [String] = []
        let service = Router()
        let outer = service.group("/a") { request, next in
            steps.append("outer")
            return next(request).map { response in
                steps.append("outer done")
                var response = response
                response.headers["X-Outer"] = "1"
                return response
            }
        }
        let inner = outer.group("/b") { request, next in
            steps.append("inner")
            guard request.headers.has("authorization") else {
                throw HTTPError(.unauthorized, detail: "Who are you?", headers: ["WWW-Authenticate": "Basic"])
            }
            return next(request).map { $0.status == .internalServerError ? Response("recovered") : $0 }
        }
        inner.on(.get, "/c") { _ in
            steps.append("handler")
            return Response("c")
        }
        inner.on(.get, "/fails") { _ -> Response in throw Odd() }
        outer.on(.get, "") { _ async throws in Response("async") }
        service.on(.get, "/a/d") { _ in Response("no group") }
        func get(_ path: String, _ headers: Headers = ["Authorization": "x"]) throws -> (Response, String) {
            let request = try Request(.get, path, headers: headers)
            let response = try hang(service.respond(to: request).promise, timeout: patience)
            return (response, try self.text(response))
        }
        let (whole, text) = try get("/a/b/c")
        expect(text == "c" && whole.headers["x-outer"] == "1")
        expectEqual(steps, ["outer", "inner", "handler", "outer done"])
        let (refused, problem) = try get("/a/b/c", [:])
        expect(refused.status == .unauthorized && refused.headers["www-authenticate"] == "Basic")
        expectEqual(refused.headers["x-outer"], "1")
        expectEqual(problem, #"{"title":"Unauthorized","status":401,"detail":"Who are you?"}"#)
        let (recovered, other) = try get("/a/b/fails")
        expect(recovered.headers["x-outer"] == "1" && other == "recovered")
        let (_, asynchronous) = try get("/a")
        let (plain, none) = try get("/a/d")
        expect(asynchronous == "async" && none == "no group" && plain.headers["x-outer"] == nil)
    }

    /// Each group's filter leaves its name in the answer.
    @Test(
        .served,
        arguments: [
            ("GET", "/v1/notes/7", 200, "root v1 notes"), ("HEAD", "/v1/notes/7", 200, "root v1 notes"),
            ("GET", "/v1/notes/refused", 409, "root v1 notes"), ("GET", "/v1/notes/odd", 500, "root v1 notes"),
            ("GET", "/v1/notes/late", 503, "root v1 notes"), ("GET", "/v1/notes/long", 413, "root v1 notes"),
            ("PUT", "/v1/notes/7", 405, "root v1 notes"), ("GET", "/v1/notes/7/8", 404, "root v1 notes"),
            ("GET", "/v1/notes", 404, "root v1 notes"), ("GET", "/v1/note", 404, "root v1"),
            ("GET", "/v2", 404, "root"),
            ("GET", "/v1/..", 404, "root"), ("OPTIONS", "*", 404, "root"), ("GET", "/v1/free", 200, "root v1"),
            ("GET", "/v1/x/files/a", 404, "root v1 files"), ("GET", "/v1/admin/x", 404, "root v1 first inside"),
            ("GET", "/v1/admin/second", 200, "root v1 second"), ("GET", "/v1/late", 503, "root v1 late"),
        ])
    func filtersAreAroundEveryAnswer(_ method: String, _ target: String, _ status: Int, _ filters: String) throws {
        func named(_ name: String) -> Router.Filter {
            { request, next in
                next(request).map { response in
                    var response = response
                    response.headers["X-Filters"] = [name, response.headers["x-filters"]].compactMap { $0 }
                        .joined(separator: " ")
                    return response
                }
            }
        }
        let service = Router(around: named("root"))
        let version = service.group("/v1", around: named("v1"))
        version.on(.get, "/free") { _ in Response("") }
        let notes = version.group("/notes/", around: named("notes"))
        notes.on(.get, "{id}") { request -> Promise<Response> in
            switch request.pathParameters["id"] {
            case "refused": throw HTTPError(.conflict)
            case "odd": return Promise(error: Odd())
            case "late": return after(.seconds(60)).map { Response("") }.timeout(.seconds(1))
            case "long": return request.body.text().map { Response($0) }
            default: return .value(Response(""))
            }
        }
        _ = version.group("/{name}/files", around: named("files"))
        let first = version.group("/admin", around: named("first"))
        for name in ["inside", "late"] { _ = first.group("").group("", around: named(name)) }
        version.group("/admin", around: named("second")).on(.get, "/second") { _ in Response("") }
        version.group("/late", around: named("late")).group("") { _, _ in throw PromiseError.timedOut }
            .on(.get, "") { _ in Response("") }
        var options = HTTPOptions()
        options.maxBody = 1
        try serve(limits: options) { service.respond(to: $0) }
        let body = target.hasSuffix("long") ? "Content-Length: 2\r\n\r\nab" : "\r\n"
        let answer = try conversation("\(method) \(target) HTTP/1.1\r\nHost: x\r\n\(body)")
        expectEqual(statuses(answer), [status])
        expect(answer.contains("\r\nX-Filters: \(filters)\r\n"), answer)
        expectEqual(errors.count, [500, 503].contains(status) ? 1 : 0)
    }

    @Test(
        .inRealTime,
        arguments: [
            ("GET", "/none", 404, nil), ("PUT", "/none", 404, nil), ("OPTIONS", "/none", 204, nil),
            ("PUT", "/note", 405, "GET, HEAD, OPTIONS"), ("GET", "/asked", 405, "OPTIONS"),
            ("PUT", "/files/x", 405, "GET, HEAD, OPTIONS"),
        ] as [(String, String, Int, String?)])
    func anOptionsForAllPathsMakesNoneKnown(_ method: String, _ path: String, _ status: Int, _ allow: String?) throws {
        let service = Router()
        service.on(.options, "/{path...}") { _ in Response(.noContent) }
        service.on(.options, "/asked") { _ in Response(.noContent) }
        service.on(.get, "/note") { _ in Response("") }
        service.on(.get, "/files/{path...}") { _ in Response("") }
        let request = try Request(ReactorHTTP.Method(method), path)
        let response = try hang(service.respond(to: request).promise, timeout: patience)
        expect(response.status.code == status && response.headers["allow"] == allow)
    }

    @Test(.inRealTime) func aFilterLeavesValuesForItsHandlers() throws {
        struct User { let name: String }
        let service = Router { request, next in
            request[User.self] = User(name: "me")
            request[Int.self] = 7
            request[Int.self] = nil
            return next(request)
        }
        service.on(.get, "/{id}") { request in
            Response(
                "\(request[User.self]?.name ?? "-") \(request[Int.self] ?? 0) \(request.pathParameters["id"] ?? "")")
        }
        let request = try Request(.get, "/a")
        expect(request[User.self] == nil && request.id == nil)
        expectEqual(try text(hang(service.respond(to: request).promise, timeout: patience)), "me 0 a")
    }

    /// They may own a connection to a database, which no later request would give back.
    @Test(.inRealTime) func valuesOfFiltersEndWithTheRequest() throws {
        final class Lease {}
        weak var lease: Lease?
        let service = Router { request, next in
            let made = Lease()
            lease = made
            request[Lease.self] = made
            return next(request)
        }
        let (client, server) = try Connection.pair()
        let served = server.serveHTTP { service.respond(to: $0) }
        let head = client.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n").then { client.read(until: "\r\n\r\n") }
        expect(try hang(head, timeout: patience) != nil && served.isPending)
        expect(lease == nil)
        client.close()
        try hang(served, timeout: patience)
        server.close()
    }

    // MARK: Errors

    @Test(
        .served,
        arguments: [
            ("/now", #"{"title":"Conflict","status":409,"detail":"\"\\a\u0001\u001f\u00E9"}"#),
            ("/later", #"{"status":499}"#),
            ("/x/number", #"{"title":"Not Found","status":404,"detail":"The parameter id is not a whole number."}"#),
            ("/query?n=", #"{"title":"Bad Request","status":400,"detail":"The parameter n is not a whole number."}"#),
            ("/query?m=1", #"{"title":"Bad Request","status":400,"detail":"The parameter n is missing."}"#),
            ("/odd", #"{"title":"Internal Server Error","status":500}"#),
            ("/long", #"{"title":"Content Too Large","status":413}"#),
            ("/broken", #"{"title":"Bad Request","status":400}"#),
            ("/json", #"{"title":"Bad Request","status":400,"detail":"The body is not valid JSON."}"#),
            ("/page?n=x", #"{"title":"Bad Request","status":400,"detail":"The parameter n is not a whole number."}"#),
            ("/page", #"{"title":"Conflict","status":409,"detail":"page 1"}"#),
            ("/page?n=7", #"{"title":"Conflict","status":409,"detail":"page 7"}"#),
            (
                "/form",
                #"{"title":"Unsupported Media Type","status":415,"detail":"The body is no application/x-www-form-urlencoded."}"#
            ),
        ])
    func anErrorIsAProblem(_ path: String, _ json: String) throws {
        let service = Router()
        service.on(.post, "/now") { _ -> Response in
            throw HTTPError(.init(409), detail: "\"\\a\u{1}\u{1F}\u{E9}")
        }
        service.on(.post, "/later") { _ in
            after(.milliseconds(1)).then { Promise<Response>(error: HTTPError(.init(499))) }
        }
        service.on(.post, "/{id}/number") { Response("\(try $0.pathParameters.value("id", as: Int.self))") }
        service.on(.post, "/query") { Response("\(try $0.queryParameters.value("n", as: Int.self))") }
        service.on(.post, "/page") { request -> Response in
            throw HTTPError(.conflict, detail: "page \(try request.queryParameters.value("n", default: 1))")
        }
        service.on(.post, "/odd") { _ in Promise<Response>(error: Odd()) }
        service.on(.post, "/long") { $0.body.text().map { Response($0) } }
        service.on(.post, "/broken") { $0.body.text().map { Response($0) } }
        service.on(.post, "/json") { $0.json([Int].self).map { _ in Response("") } }
        service.on(.post, "/form") { $0.formParameters().map { _ in Response("") } }
        let json = json.components(#"\u00E9"#).joined(separator: "\u{E9}")
        var options = HTTPOptions()
        options.maxBody = 10
        try serve(limits: options) { service.respond(to: $0) }
        let body =
            switch path {
            case "/long": "Content-Length: 11\r\n\r\n01234567890"
            case "/broken": "Transfer-Encoding: chunked\r\n\r\nx\r\n"
            default: "Content-Length: 3\r\n\r\n[1,"
            }
        let answer = try conversation("POST \(path) HTTP/1.1\r\nHost: x\r\n\(body)")
        expect(answer.hasSuffix("\r\n\r\n" + json), "\(answer)")
        expect(answer.contains("\r\nContent-Type: application/problem+json\r\n"))
        expect(errors.count == (path == "/odd" ? 1 : 0))
        // Without a socket, too.
        if path == "/odd" {
            let response = try hang(service.respond(to: Request(.post, "/odd")).promise, timeout: patience)
            expectEqual(response.status, .internalServerError)
        }
    }

    // MARK: Parameters

    /// Each name with its values.
    @Test(
        .inRealTime,
        arguments: [
            ("a=1&b=2", [["a", "1"], ["b", "2"]]), ("a=1&a=2&a", [["a", "1", "2", ""]]), ("", []), ("&&", []),
            ("a=two+words%21&%62=x%2By", [["a", "two words!"], ["b", "x+y"]]), ("=x", [["", "x"]]),
            ("a==b=", [["a", "=b="]]),
            ("a=100%&b=%zz&c=%4", [["a", "100%"], ["b", "%zz"], ["c", "%4"]]), ("a=%%41%", [["a", "%A%"]]),
            ("a=%E9", [["a", "\u{FFFD}"]]),
            ("caf%C3%A9=1&cafe%CC%81=2", [["caf\u{E9}", "1"], ["cafe\u{301}", "2"]]), ("a=%00", [["a", "\0"]]),
        ])
    func parametersAreDecoded(_ text: String, _ expected: [[String]]) throws {
        let query = try Request(.get, "/?" + text).queryParameters
        let type: Headers = ["Content-Type": "Application/X-WWW-Form-Urlencoded; charset=utf-8"]
        let form = try Request(.post, "/", headers: type, body: .text(text)).formParameters()
        let parameters = try [query, hang(form, timeout: patience)]
        for parameters in parameters {
            for field in expected { expectEqual(parameters.all(field[0]), Array(field.dropFirst())) }
            expect(parameters["none"] == nil)
        }
    }

    // MARK: Requests without a client

    @Test(.inRealTime) func aRequestIsThatOfAClient() throws {
        let request = try Request(.put, "/a?b", headers: ["X": "1", "Content-Length": "99"], body: .text("hello"))
        expect(request.description == "PUT /a?b" && request.host == "localhost" && request.headers["x"] == "1")
        expect(request.headers["content-length"] == "5" && request.body.length == 5 && request.connection == nil)
        expectEqual(request.headers["content-type"], "text/plain; charset=utf-8")
        let text = try hang(request.body.text(), timeout: patience)
        expect(text == "hello" && request.body.isComplete)
        let empty = try hang(Request(.get, "/").body.bytes(), timeout: patience)
        expectEqual(empty, [])
        let stream = try Request(.put, "/", body: .stream { output in output.write("a").then { output.write("b") } })
        expect(stream.headers["transfer-encoding"] == "chunked" && stream.body.length == nil)
        var parts: [[UInt8]] = []
        try hang(stream.body.forEach { parts.append($0) }, timeout: patience)
        expectEqual(parts, [Array("ab".utf8)])
        for length in [nil, 5] {
            let long = try Request(.put, "/", body: .stream(length: length) { $0.write("hello") })
            long.body.limit = 4
            #expect(throws: HTTPError.self) { _ = try hang(long.body.text(), timeout: patience) }
        }
        let short = try Request(.put, "/", body: .stream(length: 5) { $0.write("hell") })
        #expect(throws: BodyError.endedEarly) { _ = try hang(short.body.text(), timeout: patience) }
    }

    @Test(arguments: ["", "a", "/a b", "/\r\n", "/caf\u{E9}", "/#x", "ftp://x/", "/ HTTP/1.1\r\nA: b\r\n\r\n"])
    func aTargetThatNoServerTakesIsRefused(_ target: String) {
        #expect(throws: HTTPError.self) { _ = try Request(.get, target) }
        #expect(throws: HTTPError.self) { _ = try Request("GE T", "/") }
    }

    // MARK: Uploads

    @Test(.inRealTime) func aBodyIsSavedAsItArrives() throws {
        let folder = Folder()
        try serve { request in
            request.body.limit = 8 << 20
            let path = folder[request.path.replacing("/", with: "")]
            return .later(request.body.save(to: path).map { Response("\($0)", status: .created) })
        }
        let large = (0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        for bytes in [large, [1], []] {
            let put = client.fetch("http://\(address)/a", .put, body: .bytes(bytes)).then { $0.body.text() }
            let text = try hang(put, timeout: patience)
            let saved = try hang(readFile(folder["a"]), timeout: patience)
            expect(text == "\(bytes.count)" && saved == bytes)
            expectEqual(folder.names, ["a"])
        }
        // A client that leaves, and one that breaks the protocol, leave no state behind.
        for sent in ["Content-Length: 9\r\n\r\nabc", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nx\r\n"] {
            _ = try conversation("PUT /b HTTP/1.1\r\nHost: x\r\n\(sent)")
        }
        // Looks again and again, since the removal of a file is no event of the loop.
        func waitUntilClean() throws {
            try hang(repeatWhile { after(.milliseconds(1)).map { folder.names != ["a"] } }, timeout: patience)
        }
        try waitUntilClean()
        // Cancelled.
        let pending = RequestBody.stream { output in output.write("a").then { after(.seconds(3600)) } }
        let saved = try Request(.put, "/", body: pending).body.save(to: folder["c"])
        hang(after(.milliseconds(20)))
        saved.cancel()
        try waitUntilClean()
    }
}
