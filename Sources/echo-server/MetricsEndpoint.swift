import Promises
import Reactor

/// Answers `GET /metrics` for Prometheus, one request a connection. What it speaks of HTTP is just that.
struct MetricsEndpoint {
    let address: SocketAddress
    private let listener: Listener
    private let text: () -> String

    /// - Parameter text: the metrics in Prometheus' text format 0.0.4.
    init(_ address: SocketAddress, _ text: @escaping () -> String) throws {
        listener = try Listener.bind(address)
        self.address = listener.localAddress
        self.text = text
    }

    /// Whoever scrapes does so from one or two places; others wait in the backlog, and nobody holds a place for long.
    private static var maxConnections: Int { 16 }
    private static var patience: Duration { .seconds(5) }
    private static var longestHead: Int { 8192 }

    /// - Parameter warn: is told if the endpoint has broken; the server goes on.
    func serve(_ warn: @escaping (String) -> Void) {
        listener.serve(maxConnections: Self.maxConnections) { connection in
            connection.read(until: Array("\r\n\r\n".utf8), limit: Self.longestHead)
                .then { head in connection.write(answer(to: head ?? [])) }
                .timeout(Self.patience)
        }.catch { error in warn("there are no metrics any more: \(error)") }
    }

    func close() { listener.close() }

    /// Says what was wrong with a request that is none.
    func answer(to head: [UInt8]) -> String {
        let line = String(decoding: head.prefix { $0 != UInt8(ascii: "\r") }, as: UTF8.self).split(separator: " ")
        guard line.count == 3, line[2].hasPrefix("HTTP/1.") else { return Self.response("400 Bad Request") }
        guard line[1] == "/metrics" || line[1].hasPrefix("/metrics?") else { return Self.response("404 Not Found") }
        switch line[0] {
        case "GET": return Self.response("200 OK", text())
        case "HEAD": return Self.response("200 OK", text(), isHead: true)
        default: return Self.response("405 Method Not Allowed", allow: true)
        }
    }

    private static func response(
        _ status: String, _ body: String? = nil, isHead: Bool = false, allow: Bool = false
    ) -> String {
        let type = body == nil ? "text/plain" : "text/plain; version=0.0.4"
        let body = body ?? status + "\n"
        return """
            HTTP/1.1 \(status)\r
            Content-Type: \(type)\r
            Content-Length: \(body.utf8.count)\r
            \(allow ? "Allow: GET, HEAD\r\n" : "")Connection: close\r
            \r
            \(isHead ? "" : body)
            """
    }
}
