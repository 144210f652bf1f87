/// The client with other programs as servers and proxy, each in a separate process.
@Suite(.serialized) struct PeerServerTests {
    private static func has(_ program: String, _ argument: String) -> Bool {
        (try? EventLoop.withLoop { _ in try hang(ChildProcess.run(program, [argument])).status.isSuccess }) ?? false
    }

    /// Runs a program in a new folder during `body`, which gets the first line of its output, and the folder.
    private func withProgram(
        _ name: String, _ arguments: [String], files: [String: String] = [:],
        _ body: (_ line: Promise<String?>, _ folder: String) throws -> Void
    ) throws {
        let folder = Folder()
        for (name, text) in files {
            let text = text.replaced("FOLDER", with: folder.path)
            try hang(writeFile(text.utf8, to: "\(folder.path)/\(name)"), timeout: patience)
        }
        let arguments = arguments.map { $0.replaced("FOLDER", with: folder.path) }
        let child = try ChildProcess.spawn(
            name, arguments: arguments, workingDirectory: folder.path, standardOutput: .pipe, standardError: .null)
        defer {
            try? child.kill(SIGKILL)
            _ = try? hang(child.exit.asPromise(), timeout: patience)
        }
        try body(child.standardOutput!.readLine(), folder.path)
    }

    private func text(_ client: HTTPClient, _ address: String, _ method: Method = .get, _ body: RequestBody? = nil)
        throws
        -> String
    {
        try hang(client.fetch(address, method, body: body).then { try $0.validated().body.text() }, timeout: patience)
    }

    /// A program that is still starting refuses connections.
    private func waitForServer(_ client: HTTPClient, _ address: String) throws {
        let pauses = RetrySchedule.exponential(from: .milliseconds(10), cap: .milliseconds(200))
        _ = try hang(
            retry(maxAttempts: 100, delay: pauses) { _ in client.fetch(address).then { $0.body.bytes() } },
            timeout: patience)
    }

    private static let node = """
        const server = require('http').createServer((request, response) => {
          switch (request.url) {
          case '/early': response.writeEarlyHints({link: '</a>; rel=preload'}); response.end('late'); break
          case '/trailers':
            response.writeHead(200, {Trailer: 'X-Sum'}); response.write('a')
            response.addTrailers({'X-Sum': '7'}); response.end('b'); break
          case '/close': response.setHeader('Connection', 'close'); response.end('bye'); break
          case '/cut':
            response.writeHead(200, {'Content-Length': 10}); response.write('abc', () => request.socket.destroy()); break
          default:
            let count = 0
            request.on('data', (part) => { count += part.length })
            request.on('end', () => {
              const coding = request.headers['transfer-encoding'] || '-'
              response.end(`${request.method} ${count} ${coding} ${request.socket.remotePort}`)
            })
          }
        })
        server.listen(0, '127.0.0.1', () => console.log(server.address().port))
        """

    private func withNode(_ body: (_ port: String) throws -> Void) throws {
        try withProgram("node", ["-e", Self.node]) { line, _ in try body(#require(try hang(line, timeout: patience))) }
    }

    @Test(.inRealTime, .enabled(if: has("node", "--version"))) func nodeIsAServer() throws {
        try withNode { port in
            let address = "http://127.0.0.1:\(port)"
            let part = [UInt8](repeating: 7, count: 10_000)
            let stream = RequestBody.stream { output in
                forEach(1...100) { _ in output.write(part) }
            }
            let texts = [
                try text(client, address), try text(client, address, .put, stream),
                try text(client, address, .post, .bytes([UInt8](repeating: 7, count: 5_000_000))),
                try text(client, address, .post), try text(client, address, .delete),
            ]
            let first = texts.map { $0.split(separator: " ").dropLast().joined(separator: " ") }
            expectEqual(first, ["GET 0 -", "PUT 1000000 chunked", "POST 5000000 -", "POST 0 -", "DELETE 0 -"])
            expectEqual(Set(texts.map { $0.split(separator: " ").last }).count, 1)
            for _ in 0..<2 {
                let found = [try text(client, "\(address)/early"), try text(client, "\(address)/close")]
                expectEqual(found, ["late", "bye"])
            }
            let response = try hang(client.fetch("\(address)/trailers"), timeout: patience)
            let body = try hang(response.body.text(), timeout: patience)
            expect(body == "ab" && response.body.trailers["x-sum"] == "7")
            #expect(throws: BodyError.endedEarly) { _ = try text(client, "\(address)/cut") }
        }
    }

    private static let sockets = """
        import asyncio, websockets
        async def serve(socket):
            await socket.send(socket.request.path + ' ' + str(socket.subprotocol) + ' ' + socket.request.headers['Origin'])
            async for message in socket:
                if message == 'ping': await (await socket.ping('x'))
                if message == 'parts': await socket.send(['a', 'b', 'c'])
                elif message == 'close': await socket.close(4001, 'as you wish')
                else: await socket.send(message)
            print(socket.close_code, flush=True)
        async def main():
            options = {'subprotocols': ['chat'], 'max_size': 8 << 20}
            async with websockets.serve(serve, '127.0.0.1', 0, **options) as server:
                print(server.sockets[0].getsockname()[1], flush=True)
                await asyncio.get_running_loop().create_future()
        asyncio.run(main())
        """

    /// The package "websockets".
    @Test(.inRealTime, .enabled(if: has("python3", "-cimport websockets"))) func pythonIsAServerOfWebSockets() throws {
        try withProgram("python3", ["-u", "-c", Self.sockets]) { line, _ in
            let address = "ws://127.0.0.1:\(try #require(try hang(line, timeout: patience)))/a?b"
            for end in ["this side", "the other"] {
                let connecting = connectWebSocket(
                    to: address, protocols: ["x", "chat"], headers: ["Origin": "http://a.example"], limit: 8 << 20)
                let socket = try hang(connecting, timeout: patience)
                func next() throws -> WebSocket.Message? { try hang(socket.receive(), timeout: patience) }
                let first = try next()
                expect(first == .text("/a?b chat http://a.example") && socket.subprotocol == "chat")
                for count in [0, 125, 126, 65_535, 65_536, 300_000] {
                    let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
                    socket.send(.bytes(bytes))
                    let answer = try next()
                    expectEqual(answer, .bytes(bytes), "\(count)")
                }
                for (sent, answer) in [("é", "é"), ("ping", "ping"), ("parts", "abc")] {
                    socket.send(sent)
                    expectEqual(try next(), .text(answer))
                }
                if end == "this side" {
                    try hang(socket.close(code: 4000), timeout: patience)
                } else {
                    socket.send("close")
                }
                let last = try next()
                expect(last == nil)
            }
        }
    }

    @Test(.inRealTime, .enabled(if: has("nginx", "-v"))) func nginxIsAServer() throws {
        let configuration = """
            daemon off; master_process off; pid FOLDER/pid; error_log FOLDER/log;
            events {}
            http {
              access_log off; keepalive_requests 3; client_max_body_size 10;
              client_body_temp_path FOLDER; proxy_temp_path FOLDER; fastcgi_temp_path FOLDER;
              uwsgi_temp_path FOLDER; scgi_temp_path FOLDER;
              server {
                listen unix:FOLDER/socket; root FOLDER;
                location = /connection { return 200 "$connection $connection_requests"; }
                location = /moved { return 301 /connection; }
              }
            }
            """
        let arguments = ["-p", "FOLDER", "-c", "FOLDER/nginx.conf", "-e", "FOLDER/log"]
        let large = String(repeating: "0123456789", count: 500_000)
        try withProgram("nginx", arguments, files: ["nginx.conf": configuration, "large": large]) { _, folder in
            let client = HTTPClient(lookup: Table(try SocketAddress("unix:\(folder)/socket")))
            try waitForServer(client, "http://nginx/connection")
            let texts = try ["connection", "large", "moved", "connection"].map {
                try text(client, "http://nginx/\($0)")
            }
            expectEqual(texts[1], large)
            // Three requests on each connection: the first in `waitForServer`, two for the redirect.
            let numbers = [0, 2, 3].map { texts[$0].split(separator: " ").last }
            expectEqual(numbers, ["2", "2", "3"])
            let ranged = client.fetch("http://nginx/large", headers: ["Range": "bytes=10-12"])
            expectEqual(try hang(ranged.then { $0.body.text() }, timeout: patience), "012")
            // It answers at once, and stops reading.
            let refused = client.fetch("http://nginx/large", .put, body: .bytes([UInt8](repeating: 1, count: 16 << 20)))
            expectEqual(try hang(refused, timeout: patience).status, .contentTooLarge)
            client.close()
        }
    }

    @Test(.inRealTime, .enabled(if: has("node", "--version") && has("tinyproxy", "-v"))) func tinyproxyIsAProxy() throws
    {
        try withNode { port in
            let free = try Listener.bind("127.0.0.1:0")
            let proxy = "\(free.localAddress)"
            free.close()
            let configuration = """
                Port \(free.localAddress.port)
                Listen 127.0.0.1
                LogFile "FOLDER/log"
                BasicAuth me secret
                """
            try withProgram("tinyproxy", ["-d", "-c", "FOLDER/conf"], files: ["conf": configuration]) { _, _ in
                var options = HTTPClient.Options()
                options.startTLS = { connection, _ in .value(connection) }
                options.proxies = Proxies(http: proxy, https: proxy)
                let stranger = HTTPClient(options)
                try waitForServer(stranger, "http://127.0.0.1:\(port)/")
                let refused = try hang(stranger.fetch("http://127.0.0.1:\(port)/"), timeout: patience)
                expectEqual(refused.status, Status(407))
                let error = #expect(throws: FetchError.self) { _ = try text(stranger, "https://127.0.0.1:\(port)/") }
                guard case .refusedByProxy(let status, let headers, let body)? = error else {
                    Issue.record("\(String(describing: error))")
                    return
                }
                expect(status.code == 407 && headers.has("proxy-authenticate") && !body.isEmpty)
                options.proxies = Proxies(http: "http://me:secret@\(proxy)", https: "http://me:secret@\(proxy)")
                let client = HTTPClient(options)
                for scheme in ["http", "https", "https"] {
                    let address = "\(scheme)://127.0.0.1:\(port)/"
                    let found = try text(client, address, .post, .bytes([UInt8](repeating: 7, count: 100_000)))
                    expect(found.hasPrefix("POST 100000 -"))
                }
                stranger.close()
                client.close()
            }
        }
    }
}

extension String {
    fileprivate func replaced(_ word: String, with other: String) -> String {
        components(word).joined(separator: other)
    }
}
