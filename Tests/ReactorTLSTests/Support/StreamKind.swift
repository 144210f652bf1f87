#if TLS
// The requirements of the library's stream conformance suite, with streams over TLS. That suite is a link to the
// library's file.

/// Streams over TLS, seen from each of their ends.
enum StreamKind: CaseIterable {
    case client, server, clientOf12, serverOf12, resumed

    var isFiltered: Bool { true }
    var knowsResets: Bool { true }

    func with(turns: Int = 4000, _ body: (StreamEnd, StreamEnd, Network) throws -> Void) throws {
        try withNetwork(turns: turns) { net in
            let (client, server) =
                self == .resumed
                ? try net.resumed()
                : try net.tls { if self == .clientOf12 || self == .serverOf12 { $0.maximumVersion = .tls12 } }
            let isServer = self == .server || self == .serverOf12
            try body(StreamEnd(isServer ? server : client), StreamEnd(isServer ? client : server), net)
        }
    }
}

/// One end of a stream.
struct StreamEnd {
    let input: Connection
    var output: Connection { input }

    init(_ connection: Connection) { input = connection }

    func close() -> Guarantee<Void> { input.close() }
    func abort() { input.abort() }
}
#endif
