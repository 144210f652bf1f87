import Promises
import Reactor
import ReactorIO

/// The session of one client.
package final class Session {
    let connection: Connection
    let server: Server
    /// The channels that the client is subscribed to.
    var subscriptions: Set<[UInt8]> = []
    /// True when a request of the client has had a megabyte or more, although it may not have arrived to its end.
    var hasSentMuch = false
    /// `true` after the client has quit.
    var isOver = false
    var version = ProtocolVersion.resp2
    let id: Int

    var store: Store { server.store }

    package init(_ connection: Connection, of server: Server) {
        self.connection = connection
        self.server = server
        server.acceptedSessions += 1
        id = server.acceptedSessions
    }

    /// Answers one request after the other until the client ends its side, quits, or violates the protocol.
    package func serve() -> Promise<Void> {
        server.openSessions += 1
        connection.idleTimeout = server.limits.idle
        connection.frameTimeouts = FrameTimeouts(frame: server.limits.partialRequest)
        connection.writeQueueLimit = server.limits.subscriberQueue
        return connection.forEachFrame(RequestDecoder(for: self)) { request, bytes in
            guard let line = request.line else { return try self.send(self.answer(request, bytes.rest(), in: bytes)) }
            return try self.send(self.answer(request, line.span.bytes, in: bytes))
        }
        .recover(only: ProtocolError.self) { error in
            self.send(.error(CommandError(text: "ERR Protocol error: \(error.reason)")))
        }
        .ensure {
            if self.hasSentMuch || self.subscriptions.count > 10_000 { self.server.hasReleasedMuch = true }
            self.unsubscribe()
            self.server.openSessions -= 1
        }
    }

    /// The next request is taken after the answer has been written, so a client that never reads is slowed down.
    /// Answers to requests that arrived together are sent together.
    private func send(_ reply: Reply) -> Promise<Void> {
        let written = connection.write { reply.append(to: &$0, version) }
        return isOver ? written.done { throw StopReading() } : written
    }

    private func answer(_ request: Request, _ bytes: RawSpan, in frame: ByteReader) throws -> Reply {
        var request = request
        let name = bytes.extracting(request.next(bytes))
        guard let command = Command(name) else {
            // Otherwise a web page could make a browser send commands, in the body of a request.
            if isHTTP([UInt8](name)) { throw StopReading() }
            return .error(.unknownCommand([UInt8](name), request.words(bytes)))
        }
        do throws(CommandError) {
            guard command.words ~= request.count else { throw .wrongNumberOfArguments(command.name) }
            if !subscriptions.isEmpty && version == .resp2 && !command.isAllowedWhileSubscribed {
                throw .notWhileSubscribed(command)
            }
        } catch {
            server.statistics[command.rawValue].rejected += 1
            return .error(error)
        }
        server.statistics[command.rawValue].calls += 1
        do throws(CommandError) { return try execute(command, &request, bytes, in: frame) } catch {
            server.statistics[command.rawValue].failed += 1
            return .error(error)
        }
    }

    /// `true` if the word begins a line that every HTTP request with a body has.
    private func isHTTP(_ name: [UInt8]) -> Bool { ["post", "host:"].contains(optionName(name)) }
}
