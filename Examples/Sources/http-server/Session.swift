import Promises
import Reactor

/// The conversation with one client.
final class Session {
    let connection: Connection
    let server: Server
    /// A part of the answer is written, so no other answer can be given.
    var hasBegunAnswer = false

    var limits: Limits { server.limits }

    init(_ connection: Connection, of server: Server) {
        self.connection = connection
        self.server = server
    }

    /// Answers one request after the other, until the client or the server ends the conversation.
    func serve() -> Promise<Void> {
        connection.idleTimeout = limits.idle
        connection.frameTimeouts = FrameTimeouts(
            frame: limits.headTime, message: limits.requestTime, minimumRate: limits.rate)
        return connection.forEachFrame(RequestDecoder(limits)) { head in try self.answer(head) }
            .recover { error in try self.end(error) }
    }

    /// Sends the whole answer to a request, or the rest of it.
    func send(_ answer: Answer, to head: RequestHead) -> Promise<Void> {
        hasBegunAnswer = false
        let write = connection.write(answer.bytes)
        return keepsAlive(head) ? write : write.done { throw StopReading() }
    }

    func keepsAlive(_ head: RequestHead) -> Bool { head.keepsAlive && !server.isDraining }

    /// An answer that ends with its head, or one whose body follows.
    func answerHead(
        _ status: Status, _ length: Answer.BodyLength, to head: RequestHead, fields: StaticString = ""
    ) -> Answer {
        let connection: Answer.Connection? = keepsAlive(head) ? (head.isHTTP10 ? .keepAlive : nil) : .close
        return Answer(status, length, connection, date: server.date.bytes, fields: fields)
    }

    /// The next part of a body.
    func readPart(_ body: BodyDecoder) -> Promise<[UInt8]> {
        connection.readFrame(body).map { part in
            guard let part else { throw StopReading() }
            return part
        }
    }

    private func end(_ error: any Error) throws -> Promise<Void> {
        switch error {
        case is PeerGone: return .value
        // Without the rest of its body the answer is recognized as incomplete.
        case _ where hasBegunAnswer: return .value
        case let status as Status: return connection.write(server.refusal(status))
        case StreamError.timedOut: return connection.write(server.refusal(.requestTimeout))
        default: throw error
        }
    }
}
