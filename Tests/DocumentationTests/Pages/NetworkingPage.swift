// Made by .ci/snippets.py from docs/guides/networking.md; do not edit.
// swift-format-ignore-file
import Glibc
import Promises
import Reactor

// docs/guides/networking.md: Networking
extension Snippets {
    static func networking1() throws {
    }
}

// docs/guides/networking.md: Connecting
extension Snippets {
    static func networking2() throws {
        let listener = try Listener.bind("127.0.0.1:0")
        let connecting = connect(to: listener.localAddress, timeout: .seconds(5))
        let connection = try hang(connecting)
        assert(connection.peerAddress == listener.localAddress)
        connection.close()
        _ = listener
        _ = connecting
        _ = connection
    }
}

// docs/guides/networking.md: Connecting
extension Snippets {
    static func networking3() throws {
        struct Table: NameLookup {
            let entries: [String: [String]]

            func addresses(of host: String, port: UInt16) -> Promise<[SocketAddress]> {
                .value((entries[host] ?? []).compactMap { SocketAddress(host: $0, port: port) })
            }
        }

        let listener = try Listener.bind("127.0.0.1:0")
        let table = Table(entries: ["db.internal": ["127.0.0.1"]])
        let connection = try hang(connect(to: "db.internal:\(listener.localAddress.port)", lookup: table))
        assert(connection.peerAddress == listener.localAddress)
        connection.close()
        _ = listener
        _ = table
        _ = connection
    }
}

// docs/guides/networking.md: A pool of connections
extension Snippets {
    static func networking4() throws {
        let server = try Listener.bind("127.0.0.1:0")
        let served = server.serve { connection in connection.forEachLine { connection.write($0.uppercased() + "\n") } }
        let pool = ConnectionPool(connectionsPerAddress: 2)
        func ask(_ line: String) -> Promise<String?> {
            pool.withConnection(to: server.localAddress) { connection in
                connection.write(line + "\n").then { connection.readLine() }
            }
        }
        let answers = try hang(when(fulfilled: ["a", "b", "c"].map(ask)))
        assert(answers == ["A", "B", "C"] && pool.counts.open == 2)
        let drained = hang(pool.drain(deadline: .seconds(10)))
        assert(drained.finished == 0 && pool.counts.open == 0)  // the three had finished before
        server.close()
        try hang(served)
        _ = server
        _ = served
        _ = pool
        _ = answers
        _ = drained
    }
}

// docs/guides/networking.md: Listening and serving
extension Snippets {
    static func networking5() throws {
        let listener = try Listener.bind("127.0.0.1:0", backlog: 1024)
        let served = listener.serve(maxConnections: 10_000, onError: { error, connection in logger.warning("\(connection): \(error)") }) {
            connection in
            connection.forEachChunk { connection.write($0) }
        }
        listener.close()
        try hang(served)                                       // the last connection is done
        _ = listener
        _ = served
    }
}

// docs/guides/networking.md: Draining
extension Snippets {
    static func networking6() throws {
        func session(_ connection: Connection) -> Promise<Void> {
            connection.forEachLine { line -> Promise<Void> in
                let answer = after(.milliseconds(20)).then { connection.write("answer to \(line)\n") }
                connection.deferDrain(until: answer).catch { error in print(error) }
                return .value                                  // the next line need not wait
            }
        }
    }
}

// docs/guides/networking.md: Draining
extension Snippets {
    static func networking7() throws {
        let listener = try Listener.bind("127.0.0.1:0")
        let served = listener.serve { connection in connection.forEachChunk { connection.write($0) } }
        let client = try hang(connect(to: listener.localAddress))
        try hang(client.write("x").then { client.read(exactly: 1) })
        let result = hang(listener.drain(deadline: .seconds(10)))
        try hang(served)
        assert(result.idle == 1 && result.finished == 0 && result.aborted == 0)
        client.close()
        _ = listener
        _ = served
        _ = client
        _ = result
    }
}

// docs/guides/networking.md: Until told to stop
extension Snippets {
    static func networking8() throws {
        let listener = try Listener.bind("127.0.0.1:7000")
        let result = try listener.serveUntilStopped(drainTimeout: .seconds(10)) { connection in
            connection.forEachChunk { connection.write($0) }
        }
        print("idle: \(result.idle), finished: \(result.finished), aborted: \(result.aborted)")
        _ = listener
        _ = result
    }
}

// docs/guides/networking.md: Until told to stop
extension Snippets {
    static func networking9() throws {
        let pages = try Listener.bind("127.0.0.1:7000")
        let figures = try Listener.bind("127.0.0.1:7001")
        let served = pages.serve { connection in connection.forEachChunk { connection.write($0) } }
        let reported = figures.serve { connection in connection.write("connections: \(pages.activeConnections)\n") }
        try hang(Listener.drain([pages, figures], atFirstOf: [SIGTERM, SIGINT], deadline: .seconds(10)))
        try hang(when(fulfilled: served, reported))
        _ = pages
        _ = figures
        _ = served
        _ = reported
    }
}

// docs/guides/networking.md: Reading
extension Snippets {
    static func networking10() throws {
        let (here, there) = try Connection.pair()
        there.write("3\nabcrest").cauterize()
        let length = here.readLine(limit: 20).map { line in Int(line ?? "") ?? 0 }
        let body = try hang(length.then { count in here.read(exactly: count) })
        let rest = try hang(here.receive())
        assert(body == Array("abc".utf8) && rest == Array("rest".utf8))
        there.close()
        assert(hang(here.read()) == .end)
        here.close()
        _ = here
        _ = there
        _ = length
        _ = body
        _ = rest
    }
}

// docs/guides/networking.md: Writing
extension Snippets {
    static func networking11() throws {
        let (here, there) = try Connection.pair()
        here.writeWatermarks = (low: 1_000, high: 1_000_000)
        let write = here.write([UInt8](repeating: 0, count: 3_000_000))
        assert(!here.isWritable && here.queuedBytes >= 1_000_000)
        let relief = here.writable()
        let taken = there.read(exactly: 3_000_000)
        hang(relief)
        assert(here.isWritable && here.queuedBytes <= 1_000)
        try hang(write)
        let bytes = try hang(taken)
        assert(bytes.count == 3_000_000)

        let numbers = (1...3).map { number in Array("\(number)\n".utf8) }
        try hang(there.writeAll(numbers))
        let text = try hang(here.read(exactly: 6))
        assert(text == Array("1\n2\n3\n".utf8))
        here.abort()
        there.abort()
        _ = here
        _ = there
        _ = write
        _ = relief
        _ = taken
        _ = bytes
        _ = numbers
        _ = text
    }
}

// docs/guides/networking.md: Protocols: frames, pipelining, gathering
extension Snippets {
    static func networking12() throws {
        /// A type of one byte, a length of one byte, and as many bytes.
        struct RecordDecoder: FrameDecoder {
            func decode(_ bytes: RawSpan) throws -> DecodedFrame<(type: UInt8, payload: [UInt8])> {
                bytes.withUnsafeBytes { bytes in
                    if bytes.count < 2 { return .incomplete(missing: 2 - bytes.count) }
                    let end = 2 + Int(bytes[1])
                    if bytes.count < end { return .incomplete(missing: end - bytes.count) }
                    return .frame((bytes[0], Array(bytes[2..<end])), consumed: end)
                }
            }
        }

        let (server, client) = try Connection.pair()
        let served = server.forEachFrame(RecordDecoder()) { record in
            server.write([record.type, UInt8(record.payload.count)])
        }
        let answers = client.read(exactly: 4)
        try hang(client.write([7, 2, 0, 0, 8, 0]).then { client.shutdownWrite() })
        let bytes = try hang(answers)
        assert(bytes == [7, 2, 8, 0])
        try hang(served)
        _ = server
        _ = client
        _ = served
        _ = answers
        _ = bytes
    }
}

// docs/guides/networking.md: Protocols: frames, pipelining, gathering
extension Snippets {
    static func networking13() throws {
        let (server, client) = try Connection.pair()
        let served = server.forEachLine { line -> Promise<Void> in
            let written = server.write("\(line)!\n")
            return line == "QUIT" ? written.done { throw StopReading() } : written
        }
        try hang(client.write("HELLO\nQUIT\nrest"))
        try hang(served)
        let rest = try hang(server.receive())
        let answers = try hang(client.receive())
        assert(rest == Array("rest".utf8) && answers == Array("HELLO!\nQUIT!\n".utf8))
        _ = server
        _ = client
        _ = served
        _ = rest
        _ = answers
    }
}

// docs/guides/networking.md: Filters
extension Snippets {
    static func networking14() throws {
        /// The line "PROXY TCP4 client server port port", with which a proxy begins. Then the filter leaves.
        struct ProxyHeader: ConnectionFilter {
            struct Malformed: Error {}

            let found: (SocketAddress) -> Void
            var header: [UInt8] = []

            // Does not become ready: the header comes first.
            func begin(_ output: inout FilterOutput) {}

            mutating func receive(_ bytes: RawSpan, _ output: inout FilterOutput) throws {
                bytes.withUnsafeBytes { header += $0 }
                guard let end = header.firstIndex(of: 10) else {
                    if header.count > 107 { throw Malformed() }
                    return
                }
                let words = String(decoding: header[..<end], as: UTF8.self).split { $0.isWhitespace }
                guard words.count == 6, words[0] == "PROXY", let port = UInt16(words[4]),
                    let client = SocketAddress(host: String(words[2]), port: port)
                else { throw Malformed() }
                found(client)
                output.deliver(header[(end + 1)...])
                output.removeFilter()
            }

            func write(_ bytes: RawSpan, _ output: inout FilterOutput) { output.send(bytes) }
        }

        let (server, balancer) = try Connection.pair()
        var client: SocketAddress?
        let line = server.filter(ProxyHeader(found: { client = $0 })).then { connection in connection.readLine() }
        try hang(balancer.write("PROXY TCP4 192.0.2.7 198.51.100.1 4711 443\r\nhello\n"))
        let text = try hang(line)
        assert(text == "hello" && client == SocketAddress(host: "192.0.2.7", port: 4711))
        server.close()
        balancer.close()
        _ = server
        _ = balancer
        _ = client
        _ = line
        _ = text
    }
}

// docs/guides/networking.md: Filters
extension Snippets {
    static func networking15() throws {
        func serve(_ listener: Listener) -> Promise<Void> {
            listener.serve(onError: { error, connection in logger.warning("\(connection): \(error)") }) { connection in
                connection.filter(Rot13(), timeout: .seconds(5)).then { connection in
                    connection.forEachLine { line in connection.write("\(line)\n") }
                }
            }
        }

        struct Rot13: ConnectionFilter {
            func receive(_ bytes: RawSpan, _ output: inout FilterOutput) { output.deliver(rotated(bytes)) }
            func write(_ bytes: RawSpan, _ output: inout FilterOutput) { output.send(rotated(bytes)) }
            func receiveEnd(_ output: inout FilterOutput) {}

            private func rotated(_ bytes: RawSpan) -> [UInt8] {
                bytes.withUnsafeBytes { bytes in
                    bytes.map { byte in
                        switch byte {
                        case 65...90: (byte - 65 + 13) % 26 + 65
                        case 97...122: (byte - 97 + 13) % 26 + 97
                        default: byte
                        }
                    }
                }
            }
        }
    }
}

// docs/guides/networking.md: When the peer has gone
extension Snippets {
    static func networking16() throws {
        let (here, there) = try Connection.pair()
        let report = here.cancelWhenPeerGone { after(.seconds(60)).map { "the report" } }.then { here.write($0) }
        there.write("unread").ensure { there.abort() }.cauterize()
        do {
            try hang(report)
        } catch let gone as PeerGone {
            assert(gone == .ended || gone == .failed(SystemError(.receive, ECONNRESET)))
        }
        here.close()
        _ = here
        _ = there
        _ = report
    }
}

// docs/guides/networking.md: Idle time-outs
extension Snippets {
    static func networking17() throws {
        /// Ten seconds for each line, however it comes; when they are over `serve` closes the connection.
        func converse(_ connection: Connection) -> Promise<Void> {
            connection.readLine(limit: 1024).timeout(.seconds(10)).then { line -> Promise<Void> in
                guard let line else { return .value }
                return connection.write("\(line)\n").then { converse(connection) }
            }
        }
    }
}

// docs/guides/networking.md: Idle time-outs
extension Snippets {
    static func networking18() throws {
        func answer(_ connection: Connection) -> Promise<Void> {
            connection.frameTimeouts = FrameTimeouts(idle: .seconds(60), frame: .seconds(10))
            return connection.forEachLine { line in connection.write("\(line)\n") }.recover { error -> Promise<Void> in
                guard case StreamError.timedOut(let got) = error else { throw error }
                return got == 0 ? .value : connection.write("408 too slow\n")
            }
        }
    }
}

// docs/guides/networking.md: Options
extension Snippets {
    static func networking19() throws {
        let listener = try Listener.bind("127.0.0.1:0", options: [.set(.keepAlive, to: true)])
        let connection = try hang(connect(to: listener.localAddress, options: [.set(.sendBuffer, to: 65_536)]))
        try connection.set(.keepAliveIdle, to: .seconds(30))
        let (idle, buffer) = (try connection.value(of: .keepAliveIdle), try connection.value(of: .sendBuffer))
        assert(idle == .seconds(30) && buffer == 131_072)      // Linux doubles it, for its own bookkeeping
        connection.close()
        _ = listener
        _ = connection
        _ = idle
        _ = buffer
    }
}

// docs/guides/networking.md: Service managers
extension Snippets {
    static func networking20() throws {
        let listener = try Listener.inherited(named: "http") ?? Listener.bind("127.0.0.1:0")
        try ServiceManager.notify(.ready, .status("listening on \(listener.localAddress)"))
        if let interval = ServiceManager.watchdogInterval {
            EventLoop.current.schedule(every: interval / 2) { _ = try? ServiceManager.notify(.watchdog) }.unref()
        }
        assert(listener.localAddress.port != 0)
        _ = listener
    }
}

// docs/guides/networking.md: A line protocol
extension Snippets {
    static func networking21() throws {
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
        let served = listener.serve(maxConnections: 10_000) { connection in
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

// docs/guides/networking.md: A proxy
extension Snippets {
    static func networking22() throws {
        /// Both ways at once, until both have ended or one has failed.
        func forward(_ client: Connection, to backend: SocketAddress) -> Promise<Void> {
            connect(to: backend, timeout: .seconds(5)).then { server in
                let there = pipe(from: client, to: server, endingSink: true)
                let back = pipe(from: server, to: client, endingSink: true)
                return when(fulfilled: there, back).asVoid()
                    .tapError { _ in
                        client.abort()
                        server.abort()
                    }
                    .ensure { server.close() }
            }
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

// docs/guides/networking.md: A UDP responder
extension Snippets {
    static func networking23() throws {
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

// docs/guides/networking.md: A client with retries
extension Snippets {
    static func networking24() throws {
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
        let reply = query("Who is there?", at: address)         // no server listens yet
        let server = after(.milliseconds(150)).map {
            let listener = try Listener.bind(address, mode: 0o600)
            let served = listener.serve { connection in
                connection.forEachLine { connection.write($0.uppercased() + "\n") }
            }
            return (listener, served)
        }
        let text = try hang(reply)
        assert(text == "WHO IS THERE?")
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

// docs/guides/networking.md: A program
extension Snippets {
    static func networking25() throws {
        let child = try ChildProcess.spawn(
            named: "sh", arguments: ["-c", "while read line; do echo \"<$line>\"; done; exit 3"],
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
