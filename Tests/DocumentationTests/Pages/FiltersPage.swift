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

// docs/guides/filters.md: Filters
extension Snippets {
    static func filters2() throws {
        func serve(_ listener: Listener) -> Promise<DrainResult> {
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
