import ReactorConsole

// Who may look, and what nobody sees.

extension Bodies {
    static func answers() throws {
        try withConsole(at: "127.0.0.1:0") { console in
            let expected = [
                ("/", "text/html", "<!doctype html>"), ("/text", "text/plain", "LOOPS"),
                ("/json", "application/json", "{\"schema\":1,"),
                ("/metrics", "version=0.0.4", "reactor_turns_total{loop="),
            ]
            for (path, type, text) in expected {
                let answer = try console.ask(path)
                #expect(answer.status == 200, "\(path)")
                #expect(answer.head.contains(type), "\(path): \(answer.head)")
                #expect(answer.body.contains(text), "\(path): \(answer.body.prefix(300))")
                #expect(answer.head.contains("content-security-policy: default-src 'none'"), "\(path)")
                #expect(answer.head.contains("cache-control: no-store"), "\(path)")
                #expect(answer.head.contains("x-content-type-options: nosniff"), "\(path)")
            }
            for width in [80, 160] {
                let text = try console.ask("/text?columns=\(width)").body
                #expect(text.split(separator: "\n").allSatisfy { $0.count <= width }, "\(text)")
            }
        }
    }

    static func refuses() throws {
        try withConsole(at: "127.0.0.1:0") { console in
            let port = console.address.port
            let expected: [(String, String, String, [String: String], Int)] = [
                ("GET", "/", "localhost:\(port)", [:], 200),
                ("GET", "/", "127.0.0.1", [:], 200),
                ("GET", "/", "[::1]:\(port)", [:], 200),
                ("GET", "/", "LOCALHOST", ["Origin": "http://localhost"], 200),
                // DNS rebinding: the name of another site that leads here.
                ("GET", "/json", "evil.example", [:], 421),
                ("GET", "/json", "evil.example:\(port)", ["Origin": "http://evil.example:\(port)"], 421),
                ("GET", "/json", "127.0.0.1.evil.example", [:], 421),
                ("GET", "/json", "localhost.evil.example", [:], 421),
                ("GET", "/json", "localhost:99999", [:], 421),
                ("GET", "/events", "evil.example", [:], 421),
                // A page of another site, which knows the address.
                ("POST", "/trace", "localhost:\(port)", ["Origin": "http://evil.example"], 403),
                ("POST", "/trace", "localhost:\(port)", ["Origin": "null"], 403),
                ("POST", "/trace", "localhost:\(port)", ["Origin": "http://localhost:1"], 403),
                ("POST", "/record", "localhost:\(port)", ["Sec-Fetch-Site": "cross-site"], 403),
                ("GET", "/text", "localhost:\(port)", ["Sec-Fetch-Site": "same-site"], 403),
                ("GET", "/text", "localhost:\(port)", ["Sec-Fetch-Site": "none"], 200),
                ("POST", "/trace?seconds=0", "localhost:\(port)", ["Origin": "http://localhost:\(port)"], 200),
                // Reading changes nothing, and the switches have limits.
                ("GET", "/trace", "localhost", [:], 405),
                ("GET", "/record", "localhost", [:], 405),
                ("POST", "/json", "localhost", [:], 405),
                ("POST", "/trace?seconds=601", "localhost", [:], 400),
                ("POST", "/trace?seconds=-1", "localhost", [:], 400),
                ("POST", "/record?seconds=31", "localhost", [:], 400),
                ("POST", "/record?seconds=0", "localhost", [:], 400),
                ("GET", "/json?connections=100001", "localhost", [:], 400),
                ("GET", "/json?order=secret", "localhost", [:], 400),
                ("GET", "/text?columns=10", "localhost", [:], 400),
                ("GET", "/other", "localhost", [:], 404),
                ("GET", "/text?column=100", "localhost", [:], 400),
                ("GET", "/json?promises=1&columns=100", "localhost", [:], 400),
                ("GET", "/metrics?x", "localhost", [:], 400),
                ("POST", "/trace?second=0", "localhost", [:], 400),
            ]
            for (method, target, host, fields, status) in expected {
                let answer = try console.ask(target, method, host: host, fields)
                #expect(answer.status == status, "\(method) \(target) of \(host) with \(fields)")
                #expect(!answer.body.contains("evil"), "\(answer.body)")
                // Errors are sentences, with a reason phrase.
                if status >= 400 {
                    #expect(answer.body.hasSuffix(".\n") && !answer.body.contains("{"), "\(answer.body)")
                    #expect(answer.head.prefix { $0 != "\r\n" }.count > "http/1.1 400 ".count, "\(answer.head)")
                }
            }
            #expect(!conf.trace)
        }
    }

    static func requiresItsToken() throws {
        try withConsole(at: "127.0.0.1:0", token: "0123456789abcdef") { console in
            let expected: [(String?, Int)] = [
                (nil, 401), ("Bearer 0123456789abcdef", 200), ("bearer 0123456789abcdef", 200),
                ("Bearer 0123456789abcde", 401), ("Bearer 0123456789abcdefg", 401), ("Bearer ", 401),
                // console:0123456789abcdef, :0123456789abcdef, 0123456789abcdef, a text that is not base64
                ("Basic Y29uc29sZTowMTIzNDU2Nzg5YWJjZGVm", 200), ("Basic OjAxMjM0NTY3ODlhYmNkZWY=", 200),
                ("Basic MDEyMzQ1Njc4OWFiY2RlZg==", 401), ("Basic 0123456789*", 401), ("0123456789abcdef", 401),
            ]
            for (authorization, status) in expected {
                for host in ["localhost", "server.example"] {
                    let answer = try console.ask(
                        "/text", host: host, authorization.map { ["Authorization": $0] } ?? [:])
                    #expect(answer.status == status, "\(authorization ?? "none")")
                    #expect(status == 200 || !answer.body.contains("LOOPS"))
                }
            }
        }
    }

    static func startsOnlyWhereItIsSafe() throws {
        #expect(throws: ConsoleError.needsToken(try SocketAddress("0.0.0.0:0"))) { try Console.start(at: "0.0.0.0:0") }
        #expect(throws: ConsoleError.shortToken(least: 16)) { try Console.start(at: "127.0.0.1:0", token: "short") }
        #expect(throws: SocketAddress.ParseError.self) { try Console.start(at: "nowhere") }
        #expect(throws: SystemError.self) { try Console.start(at: "unix:/nowhere/console") }
        let folder = Folder()
        try EventLoop.withLoop { _ in
            let console = try Console.start(at: "unix:\(folder / "socket")")
            var status = stat()
            #expect(lstat(folder / "socket", &status) == 0 && status.st_mode & 0o777 == 0o600)
            #expect(throws: ConsoleError.exists) { try Console.start(at: "127.0.0.1:0") }
            console.stop()
            console.stop()
            #expect(!folder.has("socket"))
            try Console.start(at: "127.0.0.1:0", token: "0123456789abcdef").stop()
        }
    }

    /// What a client sends, and what the program knows of it, is nowhere; and nowhere is what a browser would run.
    static func showsNoValuesAndNoMarkup() throws {
        let secret = "s3cr3t-of-the-client"
        let markup = "<img src=x onerror=alert(1)>"
        let folder = Folder()
        try withConsole { console in
            try withTracing {
                let listener = try Listener.bind("unix:\(folder / "server")")
                // The errors of handlers go to the log, which has the request; and a promise has the markup as its name.
                let client = try connectedFrom(folder / "<b>\(markup.filter { $0 != "/" })", to: listener.localAddress)
                var waiting: [Resolver<Response>] = []
                let served = listener.serveHTTP { request -> Promise<Response> in
                    if request.method == .post { throw Refusal(text: secret + markup) }
                    let (promise, resolver) = Promise<Response>.pending()
                    waiting.append(resolver)
                    return promise.named(markup)
                }
                let request =
                    "/\(secret)?\(secret) HTTP/1.1\r\nHost: x\r\nCookie: \(secret)\r\nContent-Length: \(secret.count)\r\n\r\n\(secret)"
                try hang(client.write("POST \(request)GET \(request)"))
                try hang(client.read(until: "\r\n\r\n", limit: 4096))
                while waiting.isEmpty { try EventLoop.current.turn() }
                for (path, method) in [
                    ("/", "GET"), ("/text", "GET"), ("/json", "GET"), ("/metrics", "GET"),
                    ("/record?seconds=1", "POST"),
                ] {
                    let answer = try console.ask(path, method)
                    #expect(answer.status == 200)
                    #expect(!answer.body.contains(secret), "\(path)")
                    #expect(path == "/text" || !answer.body.contains("<img"), "\(path)")
                    #expect(path == "/text" || !answer.body.contains("<b>"), "\(path)")
                }
                let json = try console.ask("/json", until: "u003cimg").body
                #expect(
                    json.contains("handlerFailed") && json.contains("Refusal") && json.contains("\\u003cimg"), "\(json)"
                )
                client.abort()
                listener.close()
                waiting.forEach { $0.fulfill(Response("")) }
                _ = try hang(served)
            }
        }
    }
}

struct Refusal: Error, CustomStringConvertible {
    let text: String
    var description: String { text }
}

func withTracing(_ body: () throws -> Void) rethrows {
    conf.trace = true
    let handler = conf.logHandler
    conf.logHandler = { _ in }
    defer {
        conf.trace = false
        conf.logHandler = handler
    }
    try body()
}

/// A Unix client whose own address is a path.
func connectedFrom(_ path: String, to address: SocketAddress) throws -> Connection {
    let fd = socket(AF_UNIX, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    let own = try SocketAddress(unixPath: path)
    #expect(own.withSocketAddress { bind(fd, $0, $1) } == 0)
    #expect(address.withSocketAddress { Glibc.connect(fd, $0, $1) } == 0)
    return try Connection(adopting: fd)
}
