// Made by .ci/snippets.py from docs/guides/streams.md; do not edit.
// swift-format-ignore-file
import Promises
import Reactor

// docs/guides/streams.md: Reading
extension Snippets {
    static func streams1() throws {
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

// docs/guides/streams.md: Writing
extension Snippets {
    static func streams2() throws {
        let (here, there) = try Connection.pair()
        let numbers = (1...3).map { number in Array("\(number)\n".utf8) }
        try hang(forEach(numbers) { there.write($0) })
        let text = try hang(here.read(exactly: 6))
        assert(text == Array("1\n2\n3\n".utf8))
        here.abort()
        there.abort()
        _ = here
        _ = there
        _ = numbers
        _ = text
    }
}

// docs/guides/streams.md: Many small messages
extension Snippets {
    static func streams3() throws {
        let (publisher, subscriber) = try Connection.pair()
        publisher.writeQueueLimit = 1 << 20
        let posted = after(.zero).map { (1...20).allSatisfy { publisher.post("message \($0)\n".utf8, overflow: .drop) } }
        let line = try hang(subscriber.readLine())
        let isPosted = hang(posted)
        assert(isPosted && line == "message 1")
        publisher.abort()
        subscriber.abort()
        _ = publisher
        _ = subscriber
        _ = posted
        _ = line
        _ = isPosted
    }
}

// docs/guides/streams.md: Protocols: frames, pipelining, gathering
extension Snippets {
    static func streams4() throws {
        /// A type of one byte, a length of one byte, and as many bytes. The decoder tells the type.
        struct RecordDecoder: FrameDecoder {
            func decode(_ bytes: RawSpan) throws -> DecodedFrame<UInt8> {
                try .reading(bytes) { reader in
                    let type = try reader.byte()
                    _ = try reader.bytes(prefixedBy: UInt8.self, limit: 255)
                    return type
                }
            }
        }

        let (server, client) = try Connection.pair()
        let served = server.forEachFrame(lending: RecordDecoder()) { type, record in
            try record.skip(1)
            let payload = try record.bytes(prefixedBy: UInt8.self, limit: 255)
            return server.write { output in
                output.append(type)
                output.append(UInt8(payload.byteCount))
            }
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

// docs/guides/streams.md: Protocols: frames, pipelining, gathering
extension Snippets {
    static func streams5() throws {
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

// docs/guides/streams.md: A proxy
extension Snippets {
    static func streams6() throws {
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
