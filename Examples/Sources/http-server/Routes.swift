import Promises
import Reactor

extension Session {
    /// Answers one request. The next one is decoded when the returned promise is fulfilled.
    func answer(_ head: RequestHead) throws -> Promise<Void> {
        if case .none = head.body { return route(head) }
        if isEcho(head) { return try connection.deferDrain(until: echo(head)) }
        // The client has been promised nothing yet, and waits to hear whether it shall send the body.
        if head.expectsContinue {
            var head = head
            head.keepsAlive = false
            return route(head)
        }
        let body = try BodyDecoder(head.body, limits)
        return connection.deferDrain(until: discard(body).then { self.route(head) })
    }

    private func isEcho(_ head: RequestHead) -> Bool { head.method == .post && head.path == Path.echo }

    /// Answers a request whose body is read, or is not read at all.
    private func route(_ head: RequestHead) -> Promise<Void> {
        let isGet = head.method == .get || head.method == .head
        switch head.path {
        case Path.root: return isGet ? send(text(.ok, "Hello, world!\n", to: head), to: head) : refuse(head)
        case Path.slow: return isGet ? slow(head) : refuse(head)
        case Path.echo:
            if isEcho(head) { return send(answerHead(.ok, .known(0), to: head), to: head) }
            return send(text(.methodNotAllowed, "Use POST\n", to: head, fields: "Allow: POST\r\n"), to: head)
        default: return send(text(.notFound, "Not found\n", to: head), to: head)
        }
    }

    private func refuse(_ head: RequestHead) -> Promise<Void> {
        send(text(.methodNotAllowed, "Use GET\n", to: head, fields: "Allow: GET, HEAD\r\n"), to: head)
    }

    /// An answer with a short text, which HEAD leaves out.
    private func text(
        _ status: Status, _ text: StaticString, to head: RequestHead, fields: StaticString = ""
    ) -> Answer {
        var answer = answerHead(status, .known(text.utf8CodeUnitCount), to: head, fields: fields)
        if head.method != .head { answer.append(text) }
        return answer
    }

    // MARK: Bodies

    /// Sends the body back as it arrives: with its length if that is known, otherwise in chunks.
    private func echo(_ head: RequestHead) throws -> Promise<Void> {
        let body = try BodyDecoder(head.body, limits)
        // A client that sends the body already does not wait for it.
        guard head.expectsContinue, connection.bufferedByteCount == 0 else { return echoRest(of: body, head) }
        return connection.write("HTTP/1.1 100 Continue\r\n\r\n").then { self.echoRest(of: body, head) }
    }

    /// A loop, written as recursion: it runs in constant memory. The next part is read when the one before is written, so a
    /// client that sends and never reads is slowed down, until it has been silent for too long.
    private func echoRest(of body: BodyDecoder, _ head: RequestHead) -> Promise<Void> {
        readPart(body).then { [self] part -> Promise<Void> in
            if part.isEmpty && !body.isComplete { return echoRest(of: body, head) }
            var answer = Answer()
            switch head.body {
            case .chunked:
                if !hasBegunAnswer { answer = answerHead(.ok, .unknown, to: head) }
                answer.append(chunk: part)
                if body.isComplete { answer.appendLastChunk() }
            case .length(let length):
                if !hasBegunAnswer { answer = answerHead(.ok, .known(length), to: head) }
                answer.append(part: part)
            case .none: break
            }
            hasBegunAnswer = true
            if body.isComplete { return send(answer, to: head) }
            return connection.write(answer.bytes).then { self.echoRest(of: body, head) }
        }
    }

    /// Reads a body that means nothing to its route, so that the next request begins behind it.
    private func discard(_ body: BodyDecoder) -> Promise<Void> {
        if body.isComplete { return .value }
        return readPart(body).then { _ in self.discard(body) }
    }

    // MARK: Slow answers

    /// Answers after a second, unless the client leaves before. A client that ends its side counts as one that leaves.
    private func slow(_ head: RequestHead) -> Promise<Void> {
        connection.idleTimeout = nil
        return connection.cancelWhenPeerGone { after(limits.slowness) }.then { [self] in
            connection.idleTimeout = limits.idle
            return send(text(.ok, "At last\n", to: head), to: head)
        }
    }
}

private enum Path {
    static let root = Array("/".utf8)
    static let echo = Array("/echo".utf8)
    static let slow = Array("/slow".utf8)
}
