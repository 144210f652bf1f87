import Promises
import Reactor

/// The conversation with one client.
final class Session {
    let connection: Connection
    let server: Server
    /// The channels that the client is subscribed to.
    var subscriptions: Set<Key> = []
    /// The client has quit, or does not speak the protocol.
    var isOver = false
    private var decoder: RequestDecoder
    /// When the rest of a request must have arrived; `nil` between two requests.
    private var deadline: LoopInstant?

    var store: Store { server.store }

    init(_ connection: Connection, of server: Server) {
        self.connection = connection
        self.server = server
        decoder = RequestDecoder(server.limits)
    }

    /// Answers one request after the other until the client ends its side, quits, or makes a mistake.
    func serve() -> Promise<Void> {
        server.openSessions += 1
        connection.idleTimeout = server.limits.idle
        connection.writeQueueLimit = server.limits.subscriberQueue
        return converse().ensure {
            self.unsubscribe()
            self.server.openSessions -= 1
        }
    }

    /// A loop, written as recursion: it runs in constant memory. Answers are written before the next requests are read, so a
    /// client that sends requests and never reads is slowed down.
    private func converse() -> Promise<Void> {
        let answers = answers()
        if !answers.isEmpty {
            return connection.write(answers).then { self.isOver ? .value : self.converse() }
        }
        return read().then { [self] outcome -> Promise<Void> in
            switch outcome {
            case .bytes(let bytes):
                decoder.append(bytes)
                return converse()
            case .end: return .value
            case .failed(let error): return Promise(error: error)
            }
        }
    }

    /// The next bytes. The rest of a request must arrive before its deadline, and a drain of the listener waits for it.
    private func read() -> Promise<ReadOutcome> {
        guard decoder.isInsideRequest else {
            deadline = nil
            return Promise(connection.read())
        }
        let deadline = deadline ?? EventLoop.current.now + server.limits.partialRequest
        self.deadline = deadline
        return connection.deferDrain(until: connection.read().timeout(deadline: deadline))
    }

    /// The answers to requests that have arrived: to all, or to as many as fill a packet.
    private func answers() -> [UInt8] {
        var output: [UInt8] = []
        do throws(ProtocolError) {
            while !isOver, output.count < 65_536, let request = try decoder.next() {
                deadline = nil
                answer(request).append(to: &output)
            }
        } catch {
            Reply.error(CommandError(text: "ERR Protocol error: \(error.reason)")).append(to: &output)
            isOver = true
        }
        return output
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
