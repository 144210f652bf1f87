import SimulatedNetwork

extension Trait where Self == Around {
    /// Each test runs on a simulated network, with a server from `serve` on, which is drained in the end.
    static var served: Self { made { body in try withSimulatedNetwork { _ in try body() } } }
    /// Each test runs on a separate loop in virtual time, `EventLoop.current`, which ends with it.
    static var inLoop: Self { made { body in try EventLoop.withLoop(clock: VirtualClock()) { _ in try body() } } }
    /// The same with the kernel's clock.
    static var inRealTime: Self { made { body in try EventLoop.withLoop { _ in try body() } } }

    private static func made(_ surround: @escaping @Sendable (() throws -> Void) throws -> Void) -> Self {
        .checking { body in
            do { try surround { try Things().use(body) } } catch { return ["at the end of the test: \(error)"] }
            return []
        }
    }
}

/// The server of the test that runs on this thread, and what is left to do in the end.
private final class Things {
    var listener: Listener?
    var clientOptions = HTTPClient.Options()
    lazy var client = {
        let client = HTTPClient(clientOptions)
        ends.append { client.close() }
        return client
    }()
    var served = Promise<Void>.value
    var errors: [any Error] = []
    lazy var report = { [weak self] (error: any Error, _: Connection) in self?.errors.append(error) ?? () }
    let log = LoggedLines()
    var ends: [() throws -> Void] = []

    static let key = {
        var key = pthread_key_t()
        pthread_key_create(&key, nil)
        return key
    }()
    static var current: Things { Unmanaged.fromOpaque(pthread_getspecific(key)!).takeUnretainedValue() }

    func use(_ body: () throws -> Void) throws {
        let before = pthread_getspecific(Self.key)
        pthread_setspecific(Self.key, Unmanaged.passUnretained(self).toOpaque())
        defer { pthread_setspecific(Self.key, before) }
        try body()
        try endServer()
    }
}

// @unchecked: the server calls it on the thread of the test.
private final class LoggedLines: @unchecked Sendable { var lines: [String] = [] }

/// Leaves something to do in the end of the test.
func atEnd(_ body: @escaping () throws -> Void) { Things.current.ends.append(body) }

/// Drains the server before the end of the test, so that it has reported all errors.
func endServer() throws { while let end = Things.current.ends.popLast() { try end() } }

/// The listener of the server that this test has started.
var listener: Listener { Things.current.listener! }
var address: SocketAddress { listener.localAddress }
/// A client of the test, which is closed in the end.
var client: HTTPClient { Things.current.client }
/// Makes `client` a new one.
func useClient(_ options: HTTPClient.Options) {
    let client = HTTPClient(options)
    Things.current.client = client
    atEnd { client.close() }
}
/// Settles when the server of `serveClient` has ended its connection.
var served: Promise<Void> { Things.current.served }
/// The errors that the server has reported.
var errors: [any Error] { Things.current.errors }
/// The lines of the server's log: the path and the status.
var logged: [String] { Things.current.log.lines }

/// The options of a server, with the log that `logged` shows.
func logging() -> HTTPOptions {
    var options = HTTPOptions()
    options.log = { [log = Things.current.log] in log.lines.append("\($0.request?.path ?? "-") \($0.status.code)") }
    return options
}

/// Starts the server of a test, which is drained in the end.
func serve(
    limits options: HTTPOptions = HTTPOptions(), serving: ServeOptions = ServeOptions(),
    client: HTTPClient.Options = HTTPClient.Options(), _ handler: @escaping (Request) throws -> Answer
) throws {
    Things.current.clientOptions = client
    try serveHTTP { [report = Things.current.report] in
        $0.serveHTTP(options, serving: serving, onError: report, handler: handler)
    }
}

/// The same with another form of `serveHTTP`.
func serveHTTP(_ start: (Listener) -> Promise<DrainResult>) throws {
    let listener = try Listener.bind("127.0.0.1:0")
    let served = start(listener)
    Things.current.listener = listener
    atEnd {
        listener.drain(deadline: .seconds(10))
        _ = try hang(served, timeout: patience)
    }
}

/// Serves one connection in a test with the trait `.inLoop`, in which time limits pass at once, and returns its other end.
func serveClient(
    limits options: HTTPOptions = HTTPOptions(), _ handler: @escaping (Request) throws -> Answer
) throws -> Connection {
    let (client, server) = try Connection.pair()
    let report = Things.current.report
    let ended = server.serveHTTP(options, onError: report, handler: handler).ensure { server.close() }
    Things.current.served = ended
    atEnd {
        client.close()
        _ = try? hang(ended, timeout: .seconds(3600))
    }
    return client
}

/// Starts a server that is not the library's.
func servePeer(_ serve: @escaping (Connection) throws -> Promise<Void>) throws {
    let listener = try Listener.bind("127.0.0.1:0")
    listener.serve(handler: serve)
    Things.current.listener = listener
    atEnd { listener.close() }
}

/// Starts a server that answers each head of a request as `answer` says.
func servePeer(answering answer: @escaping (String, Connection) throws -> Promise<Void>) throws {
    try servePeer { connection in
        connection.forEachFrame(DelimiterDecoder("\r\n\r\n")) { head, _ in
            try answer(String(decoding: head, as: UTF8.self), connection)
        }
    }
}

/// A connection to the server of the test, which is closed in the end.
func connected() throws -> Connection {
    let client = try hang(connect(to: address), timeout: patience)
    atEnd { client.close() }
    return client
}

/// Only a failing test waits that long.
let patience = Duration.seconds(30)

/// Sends `text`, half-closes, and returns everything that the server answers until it ends.
func conversation(_ text: String) throws -> String {
    let client = try connected()
    try hang(client.write(text).then { client.shutdownWrite() }, timeout: patience)
    return try readToEnd(client)
}

func readToEnd(_ client: Connection) throws -> String {
    String(decoding: try hang(client.receiveAll(), timeout: .seconds(3600)), as: UTF8.self)
}

extension Connection {
    /// Everything up to the end.
    func receiveAll() -> Promise<[UInt8]> {
        var all: [UInt8] = []
        return forEachChunk { all += [UInt8]($0) }.map { all }
    }
}

/// The status codes in a series of responses whose bodies do not look like a status line.
func statuses(_ answers: String) -> [Int] {
    answers.components("HTTP/1.1 ").dropFirst().compactMap { Int($0.prefix(3)) }
}

extension String {
    /// The parts between the occurrences of `separator`.
    func components(_ separator: String) -> [Substring] {
        split(separator: separator, omittingEmptySubsequences: false)
    }
}

/// A handler for ambiguous requests: the answer shows what the server understood.
func echo(_ request: Request) -> Answer {
    .later(request.body.text().map { Response("[\(request.method) \(request.path) \($0)]") })
}

/// The result for a client of a server that answers its first line with `answer`, and ends.
func fetched(_ answer: String, _ method: Method = .get, _ options: HTTPClient.Options = .init()) throws
    -> (status: Int, body: String)
{
    try withSimulatedNetwork { _ in
        let listener = try Listener.bind("127.0.0.1:0")
        listener.serve { connection in connection.readLine().then { _ in connection.write(answer) } }
        let client = HTTPClient(options)
        defer { listener.close() }
        let got = client.fetch("http://\(listener.localAddress)/", method).then { response in
            response.body.text().map { (response.status.code, $0) }
        }
        return try hang(got, timeout: patience)
    }
}

/// Expects responses with these codes to `text`, and then the end.
func expect(_ codes: [Int], _ text: String, sourceLocation: SourceLocation = #_sourceLocation) throws {
    let answers = try conversation(text)
    #expect(statuses(answers) == codes, "\(answers)", sourceLocation: sourceLocation)
}

// MARK: Random faults

extension SplitMix64 {
    /// Changes up to two bytes, or cuts the rest off.
    mutating func spoil(_ bytes: inout [UInt8], with others: [UInt8]) {
        for _ in 0..<below(3) where !bytes.isEmpty {
            let index = below(bytes.count)
            switch below(4) {
            case 0: bytes[index] = UInt8(below(256))
            case 1: bytes.remove(at: index)
            case 2: bytes.insert(pick(others), at: index)
            default: bytes.removeSubrange(index...)
            }
        }
    }

    /// Sends `bytes` in two parts, and waits after each.
    mutating func sendInTwoParts(_ bytes: [UInt8], to connection: Connection) -> Promise<Void> {
        let cut = below(bytes.count + 1)
        return connection.write(bytes[..<cut]).then { after(.seconds(1)) }.then { connection.write(bytes[cut...]) }
            .then { after(.seconds(1)).asPromise() }
    }
}
