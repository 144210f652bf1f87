import Promises
import Reactor
import ReactorIO

/// The conversation with one client.
@usableFromInline
final class Session {
    private let connection: Connection
    private let service: HTTPService
    private let state: LoopState
    // `@exclusivity(unchecked)`: used on one thread, and no field changes during calls that could call back.
    /// An incomplete head's state. `nil` between requests, to save an idle connection's memory.
    @exclusivity(unchecked) private var partial: PartialHead?
    @exclusivity(unchecked) private var current: RequestStorage?

    private final class PartialHead {
        let parser: HeadParser<RequestLine>
        init(_ parser: HeadParser<RequestLine>) { self.parser = parser }
    }

    private init(_ connection: Connection, _ service: HTTPService) {
        (self.connection, self.service, state) = (connection, service, .of(connection))
    }

    // The client disconnected, or a drain ended the handler. Only this deinit can log a request cancelled before its
    // response.
    deinit {
        if let current {
            log(.value, current.begunStatus ?? Status(499), current)
            current.service = nil
        }
        state.forget(service)
    }

    @usableFromInline
    static func serve(_ connection: Connection, _ service: HTTPService) -> Promise<Void> {
        let session = Session(connection, service)
        connection.frameTimeouts = service.timeouts
        return connection.forEachFrame(session, drainRule: .inSilence) { _, _ in
            try session.respond()
        } recover: {
            try session.end($0)
        }
    }

    // MARK: One request

    /// Answers the decoded request. The next request is decoded when the promise is fulfilled.
    private func respond() throws -> Promise<Void> {
        guard let request = current else { return .value }
        request.connection = connection
        if request.service !== service { request.service = service }
        if service.options.log != nil { request.began = .now }
        let sent: Promise<Void>
        do {
            switch try service.handler(Request(storage: request)) {
            case .now(let response): sent = send(response, to: request)
            case .later(let promise): sent = send(promise, to: request)
            }
        } catch { sent = send(request.failure(error), to: request) }
        if sent.isPending { current?.keepHead(of: connection) }
        return sent
    }

    private func send(_ promise: Promise<Response>, to request: RequestStorage) -> Promise<Void> {
        promise.recover(policy: .allErrors) { error in
            if request.hasLeft(with: error) { throw error }
            return .value(request.failure(error))
        }.then { self.send($0, to: request) }
    }

    @inline(never)
    private func transformed(_ response: Response, for request: RequestStorage) -> Response {
        guard let transform = service.options.transform else { return response }
        var response = response
        transform(Request(storage: request), &response)
        return response
    }

    private func send(_ response: Response, to request: RequestStorage) -> Promise<Void> {
        // The handler knows the reason, which has been reported.
        if connection.isClosed, connection.ownEnd != nil { return Promise(error: StopReading()) }
        if service.transforms { return reply(transformed(response, for: request), to: request) }
        return reply(response, to: request)
    }

    @inline(__always)
    private func reply(_ response: Response, to request: RequestStorage) -> Promise<Void> {
        if case .none = request.framing { return sendNow(response, to: request, isLast: false) }
        return skipAndSend(response, to: request)
    }

    private func skipAndSend(_ response: Response, to request: RequestStorage) -> Promise<Void> {
        // The other protocol begins after the whole request, and 101 follows 100: RFC 9110, section 7.8.
        if case .upgrade = response.content, !request.isHTTP10 {
            return request.body.discard().then { self.sendNow(response, to: request, isLast: false) }
        }
        let isStream = if case .stream = response.content { request.method != .head } else { false }
        // The client has received nothing, and waits for `100 Continue`.
        if request.awaitsContinue, !isStream || request.usedBody == nil {
            return sendNow(response, to: request, isLast: true)
        }
        if isStream { return sendNow(response, to: request, isLast: false) }
        // A small body has usually arrived. If not, the client gets its answer before it has sent the rest.
        let rest = endsBehind(response, to: request) ? nil : skipRest(of: request)
        if rest?.isPending == true { return sendNow(response, to: request, isLast: false, skipping: rest) }
        return sendNow(response, to: request, isLast: rest?.isRejected == true)
    }

    /// Reads and drops the rest of a request's body, within the server's limits. A handler's higher limit applies only
    /// to its own reads.
    /// - Returns: `nil` if nothing is left, or a promise that is rejected if the next request cannot be found or is not
    ///   wanted.
    private func skipRest(of request: RequestStorage) -> Promise<Void>? {
        if case .none = request.framing { return nil }
        let body = request.body
        if body.isComplete { return nil }
        body.limit = min(body.limit, service.options.maxBody)
        // The body failed, is too long to be worth reading, or a program's read is pending.
        body.dropWhole()
        if !body.isReadable || body.isReading { return Promise(error: StopReading()).mayBeIgnored }
        return skip(body)
    }

    private func skip(_ rest: Body) -> Promise<Void> {
        let part = connection.readFrame(BodyReader(body: rest))
        if rest.isComplete { return .value }
        if case .failure(let error) = part.result { return Promise(error: error).mayBeIgnored }
        return part.then { [self] part -> Promise<Void> in
            if rest.isComplete { return .value }
            // A drain waits only for answers, and this one is sent.
            if part == nil || connection.isDraining { throw StopReading() }
            return skip(rest)
        }
    }

    /// True when the connection ends after a response, whatever happens to the request's body.
    @inline(__always)
    private func endsBehind(_ response: Response, to request: RequestStorage) -> Bool {
        !request.keepsAlive || connection.isDraining && (request.framing != .none || connection.readsLastFrame)
            || !response.headers.isEmpty && response.headers.has("connection", listing: "close")
    }

    /// - Parameters:
    ///   - isLast: true if the connection ends after the response, even if the client would keep it.
    ///   - rest: the promise of skipping the body, to wait for before the next request.
    private func sendNow(
        _ response: Response, to request: RequestStorage, isLast: Bool, skipping rest: Promise<Void>? = nil
    ) -> Promise<Void> {
        if let fault = response.fault {
            return sendNow(request.failure(fault), to: request, isLast: isLast, skipping: rest)
        }
        let isLast = isLast || endsBehind(response, to: request)
        switch response.content {
        case .stream(let length, let body) where request.method != .head && !response.status.hasNoBody:
            return stream(response, length, body, to: request, isLast)
        case .upgrade(let name, let body):
            if request.isHTTP10 {
                let refusal = Response(Status(426), headers: ["Upgrade": name])
                return sendNow(refusal, to: request, isLast: isLast, skipping: rest)
            }
            let subject = service.reportsEnds ? request.subject : nil
            let sent = write(response, to: request, isLast: false)
            return finish(sent, response.status, request, isLast: false)
                .done { throw Upgraded(body: body, subject: subject) }
        case .text, .bytes, .stream:
            let sent = write(response, to: request, isLast: isLast)
            return finish(sent, response.status, request, isLast: isLast, skipping: rest)
        }
    }

    /// Ends the request when `sent` is fulfilled.
    @inline(__always)
    private func finish(
        _ sent: Promise<Void>, _ status: Status, _ request: RequestStorage, isLast: Bool,
        skipping rest: Promise<Void>? = nil
    ) -> Promise<Void> {
        if service.options.log != nil { log(sent, status, request) }
        // `take()` moves the request; a copy would be counted.
        if let request = current.take() { state.giveBack(request) }
        if let rest { return finish(sent, skipping: rest) }
        return isLast ? sent.done { throw StopReading() } : sent
    }

    /// Sends and reads together, because a client may read the response only after sending its whole body.
    @inline(never)
    private func finish(_ sent: Promise<Void>, skipping rest: Promise<Void>) -> Promise<Void> {
        // Even if the rest is invalid, the client has its answer.
        when(fulfilled: sent, rest.recover(policy: .allErrors) { _ -> Promise<Void> in throw StopReading() }).asVoid()
    }

    private func log(_ sent: Promise<Void>, _ status: Status, _ request: RequestStorage?) {
        guard let log = service.options.log else { return }
        let (peer, request) = (connection.peerAddress, request.map { Request(storage: $0) })
        func write() {
            let duration = request?.storage.began.map { ContinuousClock.now - $0 } ?? .zero
            log(ServedRequest(request: request, status: status, peer: peer, duration: duration))
        }
        if sent.isPending { sent.ensure(write).catch(policy: .allErrors) { _ in } } else { write() }
    }

    // MARK: Writing

    /// Writes a response, with any body that is in memory.
    private func write(_ response: Response, to request: RequestStorage, isLast: Bool) -> Promise<Void> {
        let withBody = request.method != .head && !response.status.hasNoBody
        let sent = connection.write(withBody ? response.content : nil) {
            state.appendHead(of: response, to: request, isLast: isLast, &$0)
        }
        return limited(sent)
    }

    @inline(__always)
    private func limited(_ write: Promise<Void>) -> Promise<Void> {
        write.isPending ? connection.limit(write, idle: service.options.idle) : write
    }

    // MARK: Streams

    private func stream(
        _ response: Response, _ length: Int?, _ body: (BodyOutput) throws -> Promise<Void>,
        to request: RequestStorage, _ isLast: Bool
    ) -> Promise<Void> {
        let isLast = isLast || length == nil && request.isHTTP10
        let output = BodyOutput(length, isChunked: length == nil && !request.isHTTP10) { [self] output in
            guard let request = current else { return }
            request.responseBegins(response.status)
            state.appendHead(of: response, to: request, isLast: isLast, &output)
        } send: { [self] part in
            limited(connection.write(part))
        }
        if connection.sendsFiles { output.fileOutput = connection }
        // Nothing is read after the response if the client got no `100 Continue`, since it may or may not send the
        // body, or if a program's read is pending.
        let awaitedContinue = request.awaitsContinue
        var isUnread: Bool {
            awaitedContinue && request.usedBody?.hasBegun != true || request.usedBody?.isReading == true
        }
        let writing = firstly { try body(output) }
        // Usually fulfilled: the request body has arrived, and the kernel takes the bytes at once.
        let written = writing.isFulfilled ? firstly { try output.finish() } : writing.then { try output.finish() }
        /// Ends the complete response, whatever happened to the request's body.
        func end() -> Promise<Void> {
            let isLast = isLast || isUnread
            let rest = isLast ? nil : skipRest(of: request)
            return finish(.value, response.status, request, isLast: isLast, skipping: rest)
        }
        if written.isFulfilled {
            if request.framing == .none || request.usedBody?.isComplete == true {
                return finish(.value, response.status, request, isLast: isLast)
            }
            if isUnread { return end() }
        }
        return written.then { end() }.recover(policy: .allErrors) { [self] error in
            output.close()
            if !output.isUnsent || request.hasLeft(with: error) { throw error }
            let response = transformed(request.failure(error), for: request)
            return sendNow(response, to: request, isLast: request.usedBody?.isComplete == false)
        }
    }

    // MARK: The end

    private func end(_ error: any Error) throws -> Promise<Void> {
        let hasLeft = connection.hasEnded(with: error)
        // In HTTP/1.0, closing the connection would complete the response; a reset shows that it is incomplete.
        if let request = current, request.begunStatus != nil {
            if request.isHTTP10 { connection.abort() }
            if hasLeft || request.isOfBody(error) { return .value }
            return try failed(error, request.subject)
        }
        switch error {
        case let upgraded as Upgraded:
            connection.frameTimeouts = nil
            if connection.writeTimeout == service.options.idle { connection.writeTimeout = nil }
            let conversation = firstly { try upgraded.body(connection) }
            guard let subject = upgraded.subject else { return conversation }
            return conversation.recover(policy: .allErrors) { [self] error in try failed(error, subject) }
        // Between two requests.
        case StreamError.timedOut(got: 0) where current == nil: return .value
        case is HTTPError, StreamError.timedOut: return refuse(Response(for: error))
        // The client closed inside a request.
        case is StreamError, is BodyError: return .value
        default:
            if hasLeft { return .value }
            throw error
        }
    }

    /// Reports a failed conversation, in which nothing more can be sent.
    private func failed(_ error: any Error, _ subject: @autoclosure () -> String) throws -> Promise<Void> {
        guard service.reportsEnds, !connection.hasEnded(with: error) else { throw error }
        service.log(error, subject())
        return .value
    }

    /// Answers a request that cannot be parsed. The connection ends, since the next request's beginning is unknown.
    private func refuse(_ response: Response) -> Promise<Void> {
        let sent = connection.write { state.appendHead(of: response, to: nil, isLast: true, &$0) }
        log(sent, response.status, current.take())
        // The client may have disconnected.
        return limited(sent).recover(policy: .allErrors) { _ in .value }
    }

    /// Ends the loop over requests, and hands the connection to `body`.
    private struct Upgraded: Error {
        // unsafe: thrown and caught within the session, on the connection's thread.
        nonisolated(unsafe) let body: (Connection) throws -> Promise<Void>
        /// The request, if the session reports the error of `body`.
        let subject: String?
    }
}

extension Session: FrameDecoder {
    @usableFromInline
    func decode(_ bytes: RawSpan) throws -> DecodedFrame<Void> {
        // The bytes are lent for the call, and nothing keeps the pointer.
        try bytes.withUnsafeBytes { bytes throws(HTTPError) in
            var parser =
                partial?.parser ?? HeadParser(maxHead: service.options.maxHead, maxFields: service.options.maxFields)
            // Some clients send an empty line after a body: RFC 9112, section 2.2.
            let frame = try parser.decode(bytes, isRequest: true) { line, position throws(HTTPError) in
                line.isEmpty ? nil : try RequestLine(line, at: position)
            } take: { line, fields, head throws(HTTPError) -> Void? in
                let request = state.takeRequest()
                try request.begin(line, fields, head)
                current = request
                return ()
            }
            if case .frame = frame { partial = nil } else { partial = PartialHead(parser) }
            return frame
        }
    }
}
