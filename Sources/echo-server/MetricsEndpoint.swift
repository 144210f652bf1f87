import Promises
import Reactor
import ReactorIO

/// Answers `GET /metrics` for Prometheus, one request per connection, and nothing else.
struct MetricsEndpoint {
    let address: SocketAddress
    private let listener: Listener
    private let text: () -> Promise<String>

    /// - Parameter text: the metrics in Prometheus' text format 0.0.4.
    init(_ address: SocketAddress, _ text: @escaping () -> Promise<String>) throws {
        listener = try Listener.bind(address)
        self.address = listener.localAddress
        self.text = text
    }

    /// One or two clients scrape metrics. Others wait in the backlog, and `timeLimit` keeps each client's time short.
    static var maxConnections: Int { 16 }
    /// The number of answered clients that may still read and close.
    static var maxLingering: Int { 16 }
    /// The number of descriptors for the endpoint and its clients.
    static var descriptors: Int { 1 + maxConnections + maxLingering }
    static var timeLimit: Duration { .seconds(5) }
    static var longestHead: Int { 8192 }

    /// - Parameter warn: called with a message if the endpoint fails; the server continues.
    func serve(_ warn: @escaping (String) -> Void) {
        listener.serve(
            ServeOptions(maxConnections: Self.maxConnections, maxLingering: Self.maxLingering), handler: serve
        )
        .catch { error in warn("metrics are no longer served: \(error)") }
    }

    /// Closes the endpoint, and removes a Unix socket's file.
    func close() { listener.close() }

    private func serve(_ connection: Connection) -> Promise<Void> {
        readHead(connection, Self.longestHead)
            .timeout(Self.timeLimit)
            .then { head in head.map { answer(to: $0).map(Optional.some) } ?? .value(nil) }
            .recover { error -> Promise<String?> in .value(try Self.answer(to: error)) }
            .then { answer in answer.map { connection.write($0).timeout(Self.timeLimit) } ?? .value }
    }

    // MARK: HTTP

    /// Reads up to the empty line after a request's head. A line ends with a newline, with or without a carriage return
    /// (RFC 9112, 2.2).
    /// - Parameters:
    ///   - left: the maximum bytes in the rest of the head.
    ///   - first: the first line, once read.
    /// - Returns: the first line; `nil` if the client disconnected inside the head.
    private func readHead(_ connection: Connection, _ left: Int, _ first: [UInt8]? = nil) -> Promise<[UInt8]?> {
        if left < 1 { return Promise(error: StreamError.limitExceeded(limit: Self.longestHead)) }
        return connection.read(until: [UInt8(ascii: "\n")], limit: left).then { line -> Promise<[UInt8]?> in
            guard var line else { return .value(nil) }
            let rest = left - line.count - 1
            if line.last == UInt8(ascii: "\r") { line.removeLast() }
            return line.isEmpty ? .value(first ?? line) : readHead(connection, rest, first ?? line)
        }
    }

    /// Answers a request with this first line, valid or not.
    private func answer(to head: [UInt8]) -> Promise<String> {
        // Compares bytes: a space and a combining mark form another character.
        let words = head.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
        guard words.count == 3, words[2].starts(with: "HTTP/1.".utf8) else {
            return .value(Self.response("400 Bad Request"))
        }
        let isHead = words[0].elementsEqual("HEAD".utf8)
        guard words[1].prefix(while: { $0 != UInt8(ascii: "?") }).elementsEqual("/metrics".utf8) else {
            return .value(Self.response("404 Not Found", isHead: isHead))
        }
        guard isHead || words[0].elementsEqual("GET".utf8) else {
            return .value(Self.response("405 Method Not Allowed", ["Allow: GET, HEAD"]))
        }
        let type = "text/plain; version=0.0.4; charset=utf-8"
        return text().timeout(Self.timeLimit).map { Self.response("200 OK", type: type, $0, isHead: isHead) }
            .recover { _ -> Promise<String> in .value(Self.response("503 Service Unavailable", isHead: isHead)) }
    }

    /// Answers input that is not a request. Throws if no client is left.
    private static func answer(to error: any Error) throws -> String {
        switch error {
        case StreamError.limitExceeded: response("431 Request Header Fields Too Large")
        case PromiseError.timedOut: response("408 Request Timeout")
        default: throw error
        }
    }

    private static func response(
        _ status: String, _ fields: [String] = [], type: String = "text/plain; charset=utf-8", _ body: String? = nil,
        isHead: Bool = false
    ) -> String {
        let body = body ?? "\(status)\n"
        let head =
            ["HTTP/1.1 \(status)", "Content-Type: \(type)", "Content-Length: \(body.utf8.count)"] + fields
            + ["Connection: close", "", ""]
        return head.joined(separator: "\r\n") + (isHead ? "" : body)
    }
}
