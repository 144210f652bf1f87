import Glibc
import Promises
import Reactor
import TestSupport

@testable import PromisesTestSupport

/// A conversation of a round, by what both of its ends know.
enum SoakConversation: Hashable {
    /// By the address of its client.
    case client(SocketAddress)
    /// One that no address leads to, by its number in the round.
    case inside(Int)
    /// A client without an address of its own, as those of Unix sockets are, unless they ask for one.
    case nameless

    init(client address: SocketAddress?) { self = address.map(Self.client) ?? .nameless }
}

extension SoakRound {
    enum Stream: String, CaseIterable {
        case tcp, path, abstract, pair, pipes

        /// Those that a listener has. TCP, of which the kernel has most to say, twice.
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

    /// Of this round alone, in a space that all processes share.
    private func name(_ role: String) -> String { "swift-reactor-soak-\(getpid())-\(seed)-\(role)" }

    /// What the next client binds itself to.
    func clientAddress() -> SocketAddress? {
        guard namesClients else { return nil }
        names += 1
        return try! SocketAddress(abstract: name("client-\(names)"))
    }

    // MARK: Inside

    /// Both ends of a stream that no address leads to.
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
