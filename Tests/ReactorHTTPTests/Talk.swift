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
        while let end = ends.popLast() { try end() }
    }
}

/// Runs `body` on a loop of its own in virtual time, and then what it has left to do.
func inVirtualTime(_ body: () throws -> Void) throws {
    try EventLoop.withLoop(clock: VirtualClock()) { _ in try Things().use(body) }
}

/// Leaves something to do in the end of the test.
func atEnd(_ body: @escaping () throws -> Void) { Things.current.ends.append(body) }

/// The listener of the server that `serve` has started in this test.
var listener: Listener { Things.current.listener! }
var address: SocketAddress { listener.localAddress }
/// A client of the test, which is closed in the end.
var client: HTTPClient { Things.current.client }

/// Starts the server of a test with the trait `.served`.
func serve(
    limits options: HTTPOptions = HTTPOptions(), client: HTTPClient.Options = HTTPClient.Options(),
    onError: ((any Error, Connection) -> Void)? = nil, _ handler: @escaping (Request) throws -> Answer
) throws {
    let listener = try Listener.bind("127.0.0.1:0")
    let served = listener.serveHTTP(options, onError: onError, handler: handler)
    Things.current.listener = listener
    Things.current.clientOptions = client
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
    let ended = server.serveHTTP(options, handler: handler).ensure { server.close() }
    atEnd {
        client.close()
        _ = try? hang(ended, timeout: .seconds(3600))
    }
    return client
}

/// Runs a server with `handler` on a simulated host, and `body` with an address to connect to.
func withServer(
    limits options: HTTPOptions = HTTPOptions(), onError: ((any Error, Connection) -> Void)? = nil,
    _ handler: @escaping (Request) throws -> Answer, _ body: (SocketAddress, Listener) throws -> Void
) throws {
    try withSimulatedNetwork { _ in
        try Things().use {
            try serve(limits: options, onError: onError, handler)
            try body(address, listener)
        }
    }
}

/// Like `withServer`, with a client, which is closed in the end.
func withClient(
    options: HTTPClient.Options = HTTPClient.Options(), _ handler: @escaping (Request) throws -> Answer,
    _ body: (HTTPClient, SocketAddress) throws -> Void
) throws {
    try withServer(handler) { address, _ in
        Things.current.clientOptions = options
        try body(client, address)
    }
}

/// Runs `body` with the client of `serveClient`.
func withVirtualServer(_ handler: @escaping (Request) throws -> Answer, _ body: (Connection) throws -> Void) throws {
    try inVirtualTime { try body(serveClient(handler)) }
}

/// Only a failing test waits that long.
let patience = Duration.seconds(30)

/// Sends `text`, half-closes, and returns everything that the server answers until it ends.
func conversation(_ address: SocketAddress, _ text: String) throws -> String {
    let client = try hang(connect(to: address), timeout: patience)
    defer { client.close() }
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

extension Listener {
    /// Has routes for the tests of ambiguous requests: the answer shows what the server understood.
    static func echo(_ request: Request) -> Answer {
        if request.method == .head { return .now(Response("\(request.path)")) }
        return .later(request.body.text().map { Response("[\(request.method) \(request.path) \($0)]") })
    }
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
func expect(
    _ codes: [Int], _ address: SocketAddress, _ text: String, sourceLocation: SourceLocation = #_sourceLocation
) throws {
    let answers = try conversation(address, text)
    #expect(statuses(answers) == codes, "\(answers)", sourceLocation: sourceLocation)
}
