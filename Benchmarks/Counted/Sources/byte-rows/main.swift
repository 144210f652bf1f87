import Glibc
import Promises
import Reactor
import ReactorHTTP
import ReactorIO

// Moves bytes by the library's ways, on request from standard input: a line `ROW N` each, for N KiB. `.ci/counts.py
// --debug` runs it under callgrind with the debug build of the library, as the programs are that people develop: there
// a loop that handles each byte takes a hundred times as long as a copy.

/// Where callgrind writes its counts.
@_silgen_name("bench_mark") func mark() {}

func bytes(_ count: Int) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: count) {
        memset($0.baseAddress!, 0x61, count); $1 = count
    }
}

/// Sends `count` bytes, by default at once, and reads them at the other end.
func move(
    _ count: Int, by write: (Connection, Int) -> Promise<Void> = { $0.write(bytes($1)) },
    _ read: (Connection) -> Promise<Void>
) throws {
    let (source, sink) = try Connection.pair()
    source.writeQueueLimit = .max
    let all = when(fulfilled: read(sink), write(source, count).ensure { source.close() })
    _ = try hang(all)
    hang(sink.close())
}

func drain(_ connection: Connection) -> Promise<Void> { connection.forEachChunk { _ in } }

/// Frames of this many bytes.
let length = 16_384

func serve(_ handler: @escaping (Request) -> Promise<Response>, _ body: (String) throws -> Void) throws {
    let listener = try Listener.bind("127.0.0.1:0")
    var options = HTTPOptions()
    options.maxBody = .max
    let served = listener.serveHTTP(options) { handler($0) }
    try body("http://\(listener.localAddress)/")
    listener.close()
    _ = try hang(served)
}

func fetch(
    _ address: String, _ method: ReactorHTTP.Method = .get, _ body: RequestBody? = nil,
    _ read: @escaping (Fetched) -> Promise<Int>
) throws {
    var options = HTTPClient.Options()
    options.proxies = Proxies()
    options.maxBody = .max
    let client = HTTPClient(options)
    _ = try hang(client.fetch(address, method, body: body).then { read($0) })
    client.close()
}

let path = "\(getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp")/byte-rows-\(getpid())"

let rows: [String: (Int) throws -> Void] = [
    // Files.
    "write-file": { try hang(writeFile(bytes($0), to: path)) },
    "read-file": { count in
        try hang(writeFile(bytes(count), to: path))
        let read = try hang(readFile(path))
        precondition(read.count == count)
    },
    // Reads.
    "read-chunks": { try move($0) { $0.forEachChunk { _ in } } },
    "read-exactly": { count in try move(count) { $0.read(exactly: count).asVoid() } },
    "receive": { try move($0) { sink in repeatWhile { sink.receive().map { !$0.isEmpty } } } },
    "read-lines": { count in
        let line = bytes(length - 1) + [0x0A]
        try move(count, by: { source, count in forEach(0..<count / length) { _ in source.write(line) } }) {
            $0.forEachLine { _ in }
        }
    },
    "read-frames": { count in
        let head = [UInt8](arrayLiteral: 0, 0, 0x40, 0)
        let frame = head + bytes(length)
        try move(count, by: { source, count in forEach(0..<count / length) { _ in source.write(frame) } }) {
            $0.forEachFrame(LengthPrefixDecoder<UInt32>(limit: length)) { _, _ in }
        }
    },
    "read-until": { count in
        let line = bytes(length - 2) + [0x0D, 0x0A]
        try move(count, by: { source, count in forEach(0..<count / length) { _ in source.write(line) } }) { sink in
            forEach(0..<count / length) { _ in sink.read(until: "\r\n").asVoid() }
        }
    },
    // Writes.
    "write-text": { count in
        let text = String(decoding: bytes(count), as: UTF8.self)
        try move(count, by: { source, _ in source.write(text) }, drain)
    },
    "write-slice": { count in
        let all = bytes(count)
        try move(count, by: { source, _ in source.write(all[...]) }, drain)
    },
    "write-queued": { count in
        // Small ones, which are copied, behind one that fills the kernel's buffers.
        let piece = bytes(length)
        try move(
            count,
            by: { source, count in
                when(fulfilled: (0..<count / length).map { _ in source.write(piece) }).asVoid()
            }, drain)
    },
    "post": { count in
        let piece = bytes(length)
        try move(
            count,
            by: { source, count in
                for _ in 0..<count / length { source.post(piece, overflow: .abort) }
                return source.write("")
            }, drain)
    },
    "echo-chunks": { count in
        let (source, sink) = try Connection.pair()
        let echoed = sink.forEachChunk { sink.write($0) }
        let all = when(
            fulfilled: echoed, source.write(bytes(count)),
            source.read(exactly: count).asVoid().ensure { source.close() })
        _ = try hang(all)
        hang(sink.close())
    },
    // HTTP.
    "http-answer": { count in
        let body = bytes(count)
        try serve({ _ in .value(Response(body)) }) { try fetch($0) { $0.body.bytes().map(\.count) } }
    },
    "http-text": { count in
        let body = String(decoding: bytes(count), as: UTF8.self)
        try serve({ _ in .value(Response(body)) }) { try fetch($0) { $0.body.text().map(\.utf8.count) } }
    },
    "http-chunked": { count in
        let piece = bytes(length)
        try serve({ _ in
            .value(.stream { output in forEach(0..<count / length) { _ in output.write(piece) } })
        }) { try fetch($0) { $0.body.bytes().map(\.count) } }
    },
    "http-post": { count in
        try serve({ $0.body.bytes().map { Response("\($0.count)") } }) {
            try fetch($0, .post, .bytes(bytes(count))) { $0.body.text().map(\.utf8.count) }
        }
    },
    "http-form": { count in
        // Fields of a kilobyte, an escape in each.
        let field = "a=b%20" + String(decoding: bytes(1017), as: UTF8.self) + "&"
        let form = String(repeating: field, count: count / 1024)
        try serve({ $0.formParameters().map { Response("\($0.all("a").count)") } }) {
            try fetch($0, .post, .text(form, type: "application/x-www-form-urlencoded")) {
                $0.body.text().map(\.utf8.count)
            }
        }
    },
    "http-save": { count in
        try serve({ $0.body.save(to: path).map { Response("\($0)") } }) {
            try fetch($0, .post, .bytes(bytes(count))) { $0.body.text().map(\.utf8.count) }
        }
    },
    "web-text": { count in
        let message = String(decoding: bytes(length), as: UTF8.self)
        try serve({ request in
            .value(.webSocket(request) { socket in socket.forEach { socket.send($0) } })
        }) { address in
            let socket = try hang(connectWebSocket(to: "ws" + address.dropFirst(4)))
            let texts = forEach(0..<count / length) { _ in
                socket.send(message).then { socket.receive() }.asVoid()
            }
            try hang(texts.then { socket.close() })
        }
    },
    "datagrams": { count in
        let socket = try DatagramSocket.bind("127.0.0.1:0", packetSize: length)
        let packet = bytes(length)
        try hang(
            forEach(0..<count / length) { _ in
                socket.send(packet, to: socket.localAddress).then { socket.receive() }.asVoid()
            })
        socket.close()
    },
    "web-socket": { count in
        let message = bytes(length)
        try serve({ request in
            .value(.webSocket(request) { socket in socket.forEach { socket.send($0) } })
        }) { address in
            let socket = try hang(connectWebSocket(to: "ws" + address.dropFirst(4)))
            let texts = forEach(0..<count / length) { _ in
                socket.send(.bytes(message)).then { socket.receive() }.asVoid()
            }
            try hang(texts.then { socket.close() })
        }
    },
]

hang(after(.zero))
while let line = readLine() {
    let words = line.split(separator: " ")
    guard words.count == 2, let row = rows["\(words[0])"], let count = Int(words[1]) else {
        print("byte-rows: a line is `ROW N`, not '\(line)'")
        exit(64)
    }
    mark()
    do { try row(count << 10) } catch { fatalError("\(line): \(error)") }
    mark()
}
unlink(path)
