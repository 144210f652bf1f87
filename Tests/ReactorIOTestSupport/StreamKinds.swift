import Glibc
import PromisesTestSupport

/// Every kind of stream that a `Connection` can be, seen from each of its ends where they differ.
enum StreamKind: CaseIterable {
    case ipv4Client, ipv4Server, ipv6Client, ipv6Server, unixClient, unixServer, socketPair, pipes
    /// TCP through filters at both ends; with `filteredInPieces` each read from the kernel returns a part of a record.
    case filteredClient, filteredServer, filteredInPieces

    /// All that the machine supports.
    static let allCases: [StreamKind] =
        [.ipv4Client, .ipv4Server] + (hasIPv6 ? [.ipv6Client, .ipv6Server] : [])
        + [.unixClient, .unixServer, .socketPair, .pipes, .filteredClient, .filteredServer, .filteredInPieces]

    /// True if a stream can be cut off with an error at the other end. The others just end.
    var knowsResets: Bool { [.ipv4Client, .ipv4Server, .ipv6Client, .ipv6Server].contains(self) || isFiltered }

    /// True if the descriptor carries other bytes than its users see.
    var isFiltered: Bool { [.filteredClient, .filteredServer, .filteredInPieces].contains(self) }

    /// Both ends on one loop.
    func with(turns: Int = 4000, _ body: (StreamEnd, StreamEnd, Network) throws -> Void) throws {
        try withNetwork(turns: turns) { net in
            // Writes of several pieces must reach the kernel's own call.
            net.ledger.sendsPiecesSingly = false
            switch self {
            case .ipv4Client, .ipv6Client, .ipv4Server, .ipv6Server:
                let isIPv6 = self == .ipv6Client || self == .ipv6Server
                let listener = try net.listen(isIPv6 ? "[::1]:0" : "127.0.0.1:0")
                let client = StreamEnd(try hang(connect(to: listener.localAddress), timeout: patience))
                let server = StreamEnd(try net.accept(from: listener))
                listener.close()
                let isClient = self == .ipv4Client || self == .ipv6Client
                try body(isClient ? client : server, isClient ? server : client, net)
            case .filteredClient, .filteredServer, .filteredInPieces:
                if self == .filteredInPieces { net.limitReceives(to: 4093) }
                let (client, server) = try net.filteredEnds()
                let (one, other) = self == .filteredServer ? (server, client) : (client, server)
                try body(StreamEnd(one), StreamEnd(other), net)
            case .unixClient, .unixServer:
                let (client, server) = try unixSockets(net)
                try body(self == .unixClient ? client : server, self == .unixClient ? server : client, net)
            case .socketPair:
                let (one, other) = try Connection.pair()
                try body(StreamEnd(one), StreamEnd(other), net)
            case .pipes:
                let (there, back) = (try Connection.pipe(), try Connection.pipe())
                let one = StreamEnd(input: back.reader, output: there.writer)
                try body(one, StreamEnd(input: there.reader, output: back.writer), net)
            }
        }
    }

    private func unixSockets(_ net: Network) throws -> (StreamEnd, StreamEnd) {
        let folder = Folder()
        defer { withExtendedLifetime(folder) {} }
        let address = folder.address("socket")
        let listener = socket(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0)
        let client = socket(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0)
        defer { close(listener) }
        address.withSocketAddress {
            let results = [bind(listener, $0, $1), listen(listener, 1), Glibc.connect(client, $0, $1)]
            expectEqual(results, [0, 0, 0])
        }
        let server = Glibc.accept(listener, nil, nil)
        net.ledger.adopt(client)
        net.ledger.adopt(server)
        return (StreamEnd(try Connection(adopting: client)), StreamEnd(try Connection(adopting: server)))
    }
}

/// One end of a stream in both directions: one connection, or the reader of one pipe and the writer of another.
struct StreamEnd {
    let input: Connection
    let output: Connection

    init(input: Connection, output: Connection) {
        self.input = input
        self.output = output
    }

    init(_ connection: Connection) { self.init(input: connection, output: connection) }

    func close() -> Guarantee<Void> { when(guarantees: [input.close(), output.close()]).asVoid() }

    func abort() {
        input.abort()
        output.abort()
    }
}
