// Made by .ci/snippets.py from docs/guides/filters.md; do not edit.
// swift-format-ignore-file
import Promises
import Reactor

// docs/guides/filters.md: Filters
extension Snippets {
    static func filters1() throws {
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
