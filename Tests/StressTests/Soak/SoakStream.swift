@testable import PromisesTestSupport

/// A conversation of a round, identified by facts that both ends know.
enum SoakConversation: Hashable {
    /// By the address of its client.
    case client(SocketAddress)
    /// A conversation without an address, by its number in the round.
    case inside(Int)
    /// A client without an address, as Unix clients are unless they ask for one.
    case nameless

    init(client address: SocketAddress?) { self = address.map(Self.client) ?? .nameless }
}

extension SoakRound {
    enum Stream: String, CaseIterable {
        case tcp, path, abstract, pair, pipes

        /// The streams with a listener. TCP, which exercises most of the kernel, twice.
        static var listening: [Stream] { [.tcp, .tcp, .path, .abstract] }
        static var inside: [Stream] { [.pair, .pipes] }
    }

    // MARK: With a listener

    func listen() throws -> Listener {
        switch stream {
        case .path: try net.listen("unix:\(folder! / "socket")", backlog: backlog)
        case .abstract: try net.listen("unix:@\(name("server"))", backlog: backlog)
        default: try net.listen()
        }
    }

    /// Unique to this round, in a space that all processes share.
    private func name(_ role: String) -> String { "swift-reactor-soak-\(getpid())-\(seed)-\(role)" }

    /// The address that the next client binds.
    func clientAddress() -> SocketAddress? {
        guard namesClients else { return nil }
        names += 1
        return try! SocketAddress(abstract: name("client-\(names)"))
    }

    // MARK: Inside

    /// Both ends of a stream without an address.
    func makeInside(_ stream: Stream, _ conversation: SoakConversation) throws -> (StreamEnd, StreamEnd) {
        try faults.making(conversation) {
            if stream == .pair {
                let (one, other) = try Connection.pair()
                return (StreamEnd(one), StreamEnd(other))
            }
            let (there, back) = (try Connection.pipe(), try Connection.pipe())
            return (
                StreamEnd(input: back.reader, output: there.writer), StreamEnd(input: there.reader, output: back.writer)
            )
        }
    }
}
