import SimulatedNetwork

/// Runs a server with `handler` on a simulated host, and `body` with an address to connect to.
func withServer(
    limits options: HTTPOptions = HTTPOptions(), onError: ((any Error, Connection) -> Void)? = nil,
    _ handler: @escaping (Request) throws -> Answer, _ body: (SocketAddress, Listener) throws -> Void
) throws {
    try withSimulatedNetwork { _ in
        let listener = try Listener.bind("127.0.0.1:0")
        let served = listener.serveHTTP(options, onError: onError, handler: handler)
        try body(listener.localAddress, listener)
        listener.drain(deadline: .seconds(10))
        _ = try hang(served, timeout: patience)
    }
}

/// Like `withServer`, with a client, which is closed in the end.
func withClient(
    options: HTTPClient.Options = HTTPClient.Options(), _ handler: @escaping (Request) throws -> Answer,
    _ body: (HTTPClient, SocketAddress) throws -> Void
) throws {
    try withServer(handler) { address, _ in
        let client = HTTPClient(options)
        try body(client, address)
        client.close()
    }
}

/// Like `withServer`, on a virtual clock: time limits pass at once.
func withVirtualServer(
    limits options: HTTPOptions = HTTPOptions(), _ handler: @escaping (Request) throws -> Answer,
    _ body: (Connection) throws -> Void
) throws {
    try withVirtualTime { _ in
        let (client, server) = try Connection.pair()
        let served = server.serveHTTP(options, handler: handler)
        let ended = served.ensure { server.close() }
        try body(client)
        client.close()
        _ = try? hang(ended, timeout: .seconds(3600))
    }
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
