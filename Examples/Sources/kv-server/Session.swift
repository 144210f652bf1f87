import Promises

/// The conversation with one client.
final class Session {
    let connection: Connection
    let server: Server
    /// The channels that the client is subscribed to.
    var subscriptions: Set<Key> = []
    /// The client has said that it will send no more commands.
    var hasQuit = false
    private let reader: RequestReader

    var store: Store { server.store }

    init(_ connection: Connection, of server: Server) {
        self.connection = connection
        self.server = server
        reader = RequestReader(connection, server.limits)
    }

    /// Answers one request after the other until the client ends its side, quits, or makes a mistake.
    func serve() -> Promise<Void> {
        server.openSessions += 1
        connection.idleTimeout = server.limits.idle
        connection.writeQueueLimit = server.limits.subscriberQueue
        return converse()
            .recover { error -> Promise<Void> in
                guard let reply = Reply(protocolError: error) else { throw error }
                return self.connection.write(reply.bytes)
            }
            .ensure {
                self.unsubscribe()
                self.server.openSessions -= 1
            }
    }

    /// A loop, written as recursion: it runs in constant memory. Each answer is written before the next request is read, so
    /// a client that asks and never reads is slowed down.
    private func converse() -> Promise<Void> {
        reader.next().then { [self] request -> Promise<Void> in
            guard let request else { return .value }
            let reply = answer(request)
            return connection.write(reply.bytes).then { self.hasQuit ? .value : self.converse() }
        }
    }

    private func answer(_ request: Request) -> Reply {
        server.commandsProcessed += 1
        do throws(CommandError) {
            let command = try Command(request)
            if !subscriptions.isEmpty && !command.isAllowedWhileSubscribed { throw .notWhileSubscribed(command) }
            return try execute(command, request)
        } catch {
            return .error(error)
        }
    }
}

extension Reply {
    /// What a client is told whose bytes are not the protocol; `nil` if the error is another one.
    fileprivate init?(protocolError error: any Error) {
        let reason: String
        switch error {
        case let error as ProtocolError: reason = error.reason
        case StreamError.limitExceeded(Limits().header): reason = "too big bulk count string"
        case StreamError.limitExceeded: reason = "too big inline request"
        case StreamError.notUTF8: reason = "a line that is not UTF-8"
        default: return nil
        }
        self = .error(CommandError(text: "ERR Protocol error: \(reason)"))
    }
}
