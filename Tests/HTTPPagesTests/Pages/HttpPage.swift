// Made by .ci/snippets.py from docs/guides/http.md; do not edit.
// swift-format-ignore-file
import Promises
import Reactor
import ReactorHTTP
import ReactorHTTPJSON

// docs/guides/http.md: HTTP
extension Snippets {
    static func http1() throws {
    }
}

// docs/guides/http.md: A server
extension Snippets {
    static func http2() throws {
        let listener = try Listener.bind("127.0.0.1:8080")
        let served = listener.serveHTTP(serving: .untilStopped) { request in
            switch request.path {
            case "/": Response("Hello, world!\n")
            default: Response("Not found\n", status: .notFound)
            }
        }
        try hang(served)
        _ = listener
        _ = served
    }
}

// docs/guides/http.md: A server
extension Snippets {
    static func http3() throws {
        listener.serveHTTP { request -> Answer in
            guard request.method == .post else { return .now(Response(.methodNotAllowed, headers: ["Allow": "POST"])) }
            return .later(request.body.text().then { shop.place(order: $0) }.map { Response("order \($0)\n", status: .created) })
        }

        listener.serveHTTP { request async throws in
            let order = try await request.body.text().value
            return Response("order \(try await shop.place(order: order).value)\n")
        }
    }
}

// docs/guides/http.md: Bodies
extension Snippets {
    static func http4() throws {
        listener.serveHTTP { request in
            let body = request.body
            return Response.stream(type: "text/plain", length: body.length) { output in body.forEach { output.write($0) } }
        }
    }
}

// docs/guides/http.md: Bodies
extension Snippets {
    static func http5() throws {
        listener.serveHTTP { request -> Answer in
            guard let connection = request.connection else { throw HTTPError(.internalServerError) }
            let events = Response.stream(type: "text/event-stream", headers: ["Cache-Control": "no-store"]) { output in
                connection.cancelWhenPeerGone {
                    repeatWhile {
                        output.write("data: tick\n\n").then { after(.seconds(15)) }.map { !connection.isDraining }
                    }
                }
            }
            return .now(events)
        }
    }
}

// docs/guides/http.md: Files
extension Snippets {
    static func http6() throws {
        let files = StaticFiles("/srv/www", headers: ["Cache-Control": "max-age=60"])
        listener.serveHTTP { request in files.response(to: request) }
        _ = files
    }
}

// docs/guides/http.md: Upgrades
extension Snippets {
    static func http7() throws {
        listener.serveHTTP { request in
            guard request.headers.has("upgrade", listing: "lines") else {
                return Response(Status(426), headers: ["Upgrade": "lines"])
            }
            return Response.upgrade(to: "lines") { connection in connection.forEachLine { connection.write("\($0)\n") } }
        }
    }
}

// docs/guides/http.md: WebSocket
extension Snippets {
    static func http8() throws {
        listener.serveHTTP { request in
            Response.webSocket(request, protocols: ["chat"]) { socket in socket.forEach { message in socket.send(message) } }
        }
    }
}

// docs/guides/http.md: WebSocket
extension Snippets {
    static func http9() throws {
        var members: [ObjectIdentifier: WebSocket] = [:]
        listener.serveHTTP { request in
            Response.webSocket(request) { socket in
                members[ObjectIdentifier(socket)] = socket
                return socket.forEach { message in broadcast(message, to: members.values, overflow: .abort) }
                    .ensure { members[ObjectIdentifier(socket)] = nil }
            }
        }
        _ = members
    }
}

// docs/guides/http.md: WebSocket
extension Snippets {
    static func http10() throws {
        let chat = connectWebSocket(to: "ws://127.0.0.1:8080/chat", protocols: ["chat"]).then { socket in
            socket.send("hello")
            return socket.forEach { message in print(message) }.ensure { socket.close() }
        }
        _ = chat
    }
}

// docs/guides/http.md: A client
extension Snippets {
    static func http11() throws {
        let page = try hang(fetch("http://127.0.0.1:8080/").then { $0.body.text() })
        _ = page
    }
}

// docs/guides/http.md: A client
extension Snippets {
    static func http12() throws {
        var options = HTTPClient.Options()
        options.firstByte = .seconds(5)
        options.connections = PoolLimits(perKey: 16)
        let client = HTTPClient(options)
        let login = client.fetch("http://127.0.0.1:8080/login", .post, body: .text("name"))
        let copy = client.fetch("http://127.0.0.1:8080/a").then { page in
            let body = RequestBody.stream(length: page.body.length) { output in page.body.forEach { output.write($0) } }
            return client.fetch("http://127.0.0.1:8080/b", .put, body: body)
        }
        _ = options
        _ = client
        _ = login
        _ = copy
    }
}

// docs/guides/http.md: A client
extension Snippets {
    static func http13() throws {
        struct User: Codable { var name: String }
        let user = fetch("http://127.0.0.1:8080/users/1").then { try $0.json(User.self) }
        let made = fetch("http://127.0.0.1:8080/users", .post, body: try .json(User(name: "me")))
        listener.serveHTTP { request in request.json(User.self).map { try Response.json($0, status: .created) } }
        _ = user
        _ = made
    }
}

// docs/guides/http.md: A client
extension Snippets {
    static func http14() throws {
        struct DockerSocket: NameLookup {
            func addresses(of host: String, port: UInt16) -> Promise<[SocketAddress]> {
                firstly { .value([try SocketAddress("unix:/run/docker.sock")]) }
            }
        }
        let docker = HTTPClient(lookup: DockerSocket())
        let version = docker.fetch("http://docker/version").then { $0.body.text() }
        _ = docker
        _ = version
    }
}

// docs/guides/http.md: PromiseKit's first programs
extension Snippets {
    static func http15() throws {
        let client = HTTPClient()
        spinner.start()
        firstly { client.fetch("http://127.0.0.1:8080/login", .post, body: .text("me")) }
            .then { try $0.validated().body.text() }
            .then { avatar in client.fetch("http://127.0.0.1:8080/images/\(avatar)") }
            .then { try $0.validated().body.bytes() }
            .done { image in show(image) }
            .ensure { spinner.stop() }
            .catch { error in report(error) }
        let pages = when(fulfilled: 1...10, concurrently: 3) { number in
            client.fetch("http://127.0.0.1:8080/pages/\(number)").then { $0.body.text() }
        }
        _ = client
        _ = pages
    }
}
