// Made by .ci/snippets.py from docs/guides/networking-examples.md; do not edit.
// swift-format-ignore-file
import Glibc
import Promises
import Reactor

// docs/guides/networking-examples.md: A line protocol
extension Snippets {
    static func networkingExamples1() throws {
        /// Words that are kept until the process ends.
        final class Store {
            private var values: [String: String] = [:]

            func answer(_ line: String) -> String {
                let words = line.split(separator: " ", maxSplits: 2).map(String.init)
                switch words.first {
                case "SET" where words.count == 3:
                    values[words[1]] = words[2]
                    return "OK"
                case "GET" where words.count == 2: return values[words[1]] ?? "NONE"
                default: return "ERROR"
                }
            }
        }

        let store = Store()
        let listener = try Listener.bind("127.0.0.1:0")        // 0: any port that is free
        let served = listener.serve(ServeOptions(maxConnections: 10_000)) { connection in
            connection.idleTimeout = .seconds(60)
            return connection.forEachLine(limit: 1024) { line in
                connection.write(store.answer(line) + "\n")
            }
        }

        /// At a signal of the system the listener closes, and its connections within ten seconds.
        func end(_ listener: Listener, at signal: CInt) throws -> Guarantee<DrainResult> {
            try nextSignal(signal).then { listener.drain(deadline: .seconds(10)) }
        }
        var answers: [String] = []
        let talk = connect(to: listener.localAddress).then { connection in
            connection.write("SET fruit a ripe pear\r\nGET fruit\nDANCE\n")
                .then { connection.shutdownWrite() }
                .then { connection.forEachLine { answers.append($0) } }
                .ensure { connection.close() }
        }
        try hang(talk)
        assert(answers == ["OK", "a ripe pear", "ERROR"])
        listener.close()
        try hang(served)
        _ = store
        _ = listener
        _ = served
        _ = answers
        _ = talk
    }
}

// docs/guides/networking-examples.md: A proxy
extension Snippets {
    static func networkingExamples2() throws {
        /// Both ways at once, until both have ended or one has failed.
        func forward(_ client: Connection, to backend: SocketAddress) -> Promise<Void> {
            connect(to: backend, timeout: .seconds(5)).then { server in
                let there = pipe(from: client, to: server, endingSink: true)
                let back = pipe(from: server, to: client, endingSink: true)
                return when(fulfilled: there, back).asVoid()
                    .tapError { _ in server.abort() }
                    .ensure { server.close() }
            }
            .tapError { _ in client.abort() }                  // also if the backend refuses
        }

        let backend = try Listener.bind("127.0.0.1:0")
        let echoing = backend.serve { connection in connection.forEachChunk { connection.write($0) } }
        let front = try Listener.bind("127.0.0.1:0")
        let forwarding = front.serve { client in forward(client, to: backend.localAddress) }
        let echo = connect(to: front.localAddress).then { connection in
            connection.write("through and back")
                .then { connection.shutdownWrite() }
                .then { connection.read(exactly: 16) }
                .ensure { connection.close() }
        }
        let bytes = try hang(echo)
        assert(bytes == Array("through and back".utf8))
        for listener in [front, backend] { listener.close() }
        try hang(when(fulfilled: forwarding, echoing))
        _ = backend
        _ = echoing
        _ = front
        _ = forwarding
        _ = echo
        _ = bytes
    }
}

// docs/guides/networking-examples.md: A UDP responder
extension Snippets {
    static func networkingExamples3() throws {
        let socket = try DatagramSocket.bind("127.0.0.1:0")
        let answering = socket.forEachPacket { bytes, origin in
            let reply = bytes.withUnsafeBytes { Array($0.reversed()) }
            socket.send(reply, to: origin.address).cauterize()
        }
        let peer = socket.localAddress!
        let asker = try DatagramSocket.connect(to: peer)
        let answer = retry(maxAttempts: 3) { _ in                // datagrams may be lost
            asker.send("ping".utf8).then { asker.receive().timeout(.seconds(1)) }
        }
        let packets = try hang(answer)
        assert(packets.map(\.bytes) == [Array("gnip".utf8)])
        answering.cancel()
        socket.close()
        asker.close()
        _ = socket
        _ = answering
        _ = peer
        _ = asker
        _ = answer
        _ = packets
    }
}

// docs/guides/networking-examples.md: A client with retries
extension Snippets {
    static func networkingExamples4() throws {
        /// Whether another attempt may succeed.
        func mayPass(_ error: any Error) -> Bool {
            switch error {
            case let error as SystemError:
                [ECONNREFUSED, ECONNRESET, ENOENT, EPIPE, ETIMEDOUT].contains(error.code)
            case let error as ConnectError:                        // a name's addresses, each with its error
                error.failures.contains { mayPass($0.error) }
            case let error as NameLookupError: error.isTemporary
            case PromiseError.timedOut: true
            default: false
            }
        }

        struct NoAnswer: Error {}

        /// One line there and one back, within half a minute in all.
        func query(_ question: String, at address: String) -> Promise<String> {
            let answer = retry(maxAttempts: 8, delay: .exponential(from: .milliseconds(200)), while: mayPass) { _ in
                connect(to: address, timeout: .seconds(2)).then { connection in
                    connection.write(question + "\n")
                        .then { connection.readLine() }
                        .timeout(.seconds(5))
                        .ensure { connection.close() }
                }
            }
            return answer.timeout(.seconds(30)).map { line in
                guard let line else { throw NoAnswer() }
                return line
            }
        }
        let address = "unix:" + temporaryFolder + "/query.sock"
        let reply = query("What is new?", at: address)           // the server starts later
        let server = after(.milliseconds(150)).map {
            let listener = try Listener.bind(address, mode: 0o600)
            let served = listener.serve { connection in
                connection.forEachLine { connection.write($0.uppercased() + "\n") }
            }
            return (listener, served)
        }
        let text = try hang(reply)
        assert(text == "WHAT IS NEW?")
        let (listener, served) = try hang(server)
        listener.close()
        try hang(served)
        _ = address
        _ = reply
        _ = server
        _ = text
        _ = listener
        _ = served
    }
}

// docs/guides/networking-examples.md: A program
extension Snippets {
    static func networkingExamples5() throws {
        let child = try ChildProcess.spawn(
            "sh", arguments: ["-c", "while read line; do echo \"<$line>\"; done; exit 3"],
            standardInput: .pipe, standardOutput: .pipe)
        let (input, output) = (child.standardInput!, child.standardOutput!)
        var lines: [String] = []
        let read = output.forEachLine { line in lines.append(line) }
        let written = input.write("a\nb\n").ensure { input.close() }
        try hang(when(fulfilled: written, read))
        let status = hang(child.exit)
        assert(lines == ["<a>", "<b>"] && status == .exited(3))

        let count = try hang(ChildProcess.run("wc", ["-c"], input: [UInt8](repeating: 7, count: 1000)))
        assert(count.status.isSuccess && count.text.contains("1000"))
        _ = child
        _ = input
        _ = output
        _ = lines
        _ = read
        _ = written
        _ = status
        _ = count
    }
}

// docs/guides/networking-examples.md: A program
extension Snippets {
    static func networkingExamples6() throws {
        let printf = try ChildProcess.spawn("printf", arguments: [#"a\n\377"#], standardOutput: .pipe)
        var lines: [[UInt8]] = []
        try hang(printf.standardOutput!.forEachFrame(DelimiterDecoder("\n", lastFrame: .accept)) { lines.append($0) })
        let status = hang(printf.exit)
        assert(lines == [[0x61], [0xFF]] && status.isSuccess)
        _ = printf
        _ = lines
        _ = status
    }
}
