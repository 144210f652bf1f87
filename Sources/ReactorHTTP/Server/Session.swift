import Promises
import Reactor

/// The conversation with one client.
@usableFromInline
final class Session {
    private let connection: Connection
    private let service: Service
    private let state: LoopState
    // `@exclusivity(unchecked)`: one thread, and no field is being changed while code is called that could call back.
    /// What has been found of a head that is incomplete. Between two requests there is none, which an idle connection would keep.
    @exclusivity(unchecked) private var partial: PartialHead?
    /// The request that has arrived and has not been answered yet.
    @exclusivity(unchecked) private var current: RequestStorage?

    private final class PartialHead {
        let parser: HeadParser<RequestLine>
        init(_ parser: HeadParser<RequestLine>) { self.parser = parser }
    }

    private init(_ connection: Connection, _ service: Service) {
        (self.connection, self.service, state) = (connection, service, .of(connection))
    }

    // The client has left, or a drain has ended the handler: however that was cancelled, nothing else is told of it.
    deinit { if let current { log(.value, current.begunStatus ?? Status(499), current) } }

    /// Answers one request after the other, until the client or the server ends the conversation.
    @usableFromInline
    static func serve(_ connection: Connection, _ service: Service) -> Promise<Void> {
        let session = Session(connection, service)
        connection.frameTimeouts = service.timeouts
        return connection.forEachFrame(session) { _ in
            try session.respond()
        } recover: {
            try session.end($0)
        }
    }

    // MARK: One request

    /// Answers the request that has been decoded. The next one is decoded when the returned promise is fulfilled.
    private func respond() throws -> Promise<Void> {
        guard let request = current else { return .value }
        request.connection = connection
        request.limits = (service.options.maxBody, service.options.maxHead)
        if service.options.log != nil { request.began = .now }
        let answer: Answer
        do { answer = try service.handler(Request(storage: request)) } catch {
            answer = .now(failure(error, of: request))
        }
        switch consume answer {
        case .now(let response): return send(response, to: request)
        case .later(let promise): return send(promise, to: request)
        }
    }

    private func send(_ promise: Promise<Response>, to request: RequestStorage) -> Promise<Void> {
        promise.recover(policy: .allErrors) { error in
            if self.hasLeft(with: error, request) { throw error }
            return .value(self.failure(error, of: request))
        }.then { self.send($0, to: request) }
    }

    /// Whether `error` is that of a client that has left. A handler gets the `SystemError` of its client's connection by the body.
    private func hasLeft(with error: any Error, _ request: RequestStorage) -> Bool {
        (!(error is SystemError) || request.usedBody?.hasFailed == true) && connection.hasEnded(with: error)
    }

    /// The response to a request whose handler has failed.
    private func failure(_ error: any Error, of request: RequestStorage) -> Response {
        if error is HTTPError || Self.isOfBody(error, request) { return Self.response(for: error) }
        service.onError?(error, connection)
        return Response(for: error)
    }

    /// Whether `error` is that of a read of the body. A handler may do without the body, and fail later.
    private static func isOfBody(_ error: any Error, _ request: RequestStorage) -> Bool {
        guard request.usedBody?.hasFailed == true else { return false }
        return error is HTTPError || error is StreamError || error is BodyError
    }

    /// The response to what a client has broken.
    private static func response(for error: any Error) -> Response {
        if case StreamError.timedOut = error { return Response(for: HTTPError(Status(408))) }
        return Response(for: error is BodyError || error is StreamError ? HTTPError(.badRequest) : error)
    }

    /// Sends a response once the body of its request has been read, and ends the request.
    private func send(_ response: Response, to request: RequestStorage) -> Promise<Void> {
        if case .none = request.framing { return sendNow(response, to: request, isLast: false) }
        // The other protocol begins behind the whole request, and 101 behind 100: RFC 9110, section 7.8.
        if case .upgrade = response.content, !request.isHTTP10 {
            return request.body.discard().then { self.sendNow(response, to: request, isLast: false) }
        }
        let isStream = if case .stream = response.content { request.method != .head } else { false }
        // The client has been promised nothing yet, and waits to hear whether it shall send the body.
        if request.awaitsContinue, !isStream || request.usedBody == nil {
            return sendNow(response, to: request, isLast: true)
        }
        if isStream { return sendNow(response, to: request, isLast: false) }
        let body = request.body
        if body.isComplete { return sendNow(response, to: request, isLast: false) }
        // What has failed cannot be continued, too much is not read for nothing, and a read of the program still waits.
        if !body.isReadable || body.isReading { return sendNow(response, to: request, isLast: true) }
        return body.discard().then { self.sendNow(response, to: request, isLast: false) }.recover { error in
            // The client keeps the rest to itself; the response does not depend on it.
            guard case StreamError.timedOut = error, self.current != nil else { throw error }
            return self.sendNow(response, to: request, isLast: true)
        }
    }

    /// - Parameter isLast: whether the connection ends with the response, whatever the client wants.
    private func sendNow(_ response: Response, to request: RequestStorage, isLast: Bool) -> Promise<Void> {
        if let fault = response.fault { return sendNow(failure(fault, of: request), to: request, isLast: isLast) }
        let isLast =
            isLast || !request.keepsAlive || connection.isDraining
            || !response.headers.isEmpty && response.headers.has("connection", listing: "close")
        switch response.content {
        case .stream(let length, let body) where request.method != .head && !response.status.hasNoBody:
            return stream(response, length, body, to: request, isLast)
        case .upgrade(_, let body):
            if request.isHTTP10 { return sendNow(Response(Status(426)), to: request, isLast: isLast) }
            let sent = write(response, to: request, isLast: false)
            return finish(sent, response.status, request, isLast: false).done { throw Upgraded(body: body) }
        case .text, .bytes, .stream:
            let sent = write(response, to: request, isLast: isLast)
            return finish(sent, response.status, request, isLast: isLast)
        }
    }

    /// The request has been answered when `sent` is fulfilled.
    @inline(__always)
    private func finish(
        _ sent: Promise<Void>, _ status: Status, _ request: RequestStorage, isLast: Bool
    ) -> Promise<Void> {
        if service.options.log != nil { log(sent, status, request) }
        // Moved, which counts no reference.
        if let request = current.take() { state.giveBack(request) }
        return isLast ? sent.done { throw StopReading() } : sent
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

    /// Writes a response, with its body if that is here.
    private func write(_ response: Response, to request: RequestStorage, isLast: Bool) -> Promise<Void> {
        let withBody = request.method != .head && !response.status.hasNoBody
        let sent = connection.write(withBody ? response.content : nil) {
            appendHead(response, to: request, isLast: isLast, &$0)
        }
        return limited(sent)
    }

    private func appendHead(
        _ response: Response, to request: RequestStorage?, isLast: Bool, _ output: inout ByteWriter
    ) {
        let length = response.content.length
        output.append(state.beginning(response.status, response.contentType))
        if !response.headers.isEmpty { output.append(response.headers, without: Self.ownFields) }
        if case .upgrade(let name, _) = response.content {
            output.append("Connection: Upgrade\r\nUpgrade: " as StaticString)
            output.append(value: name)
            output.append("\r\n" as StaticString)
        } else if isLast {
            output.append("Connection: close\r\n" as StaticString)
        } else if request?.isHTTP10 == true {
            output.append("Connection: keep-alive\r\n" as StaticString)
        }
        if response.status.hasNoBody || length == nil && request?.isHTTP10 == true {
            output.append("\r\n" as StaticString)
        } else {
            output.append(framing: length)
        }
    }

    private static var ownFields: [StaticString] { ["content-length", "transfer-encoding", "connection", "date"] }

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
        let output = BodyOutput(length, isChunked: length == nil && !request.isHTTP10) { [self] in
            appendHead(response, to: request, isLast: isLast, &$0)
        } send: { [self, status = response.status] part in
            if request.begunStatus == nil { request.responseBegins(status) }
            return limited(connection.write(part))
        }
        // A client that is not told to send the body may do so or not: nothing is read behind such a response. Nor is it where
        // a read of the program still waits.
        let awaitedContinue = request.awaitsContinue
        var isUnread: Bool {
            awaitedContinue && request.usedBody?.hasBegun != true || request.usedBody?.isReading == true
        }
        let writing = firstly { try body(output) }
        // Usually the body of a small request has arrived, and the kernel takes what is written.
        let written = writing.isFulfilled ? firstly { try output.finish() } : writing.then { try output.finish() }
        /// What has been sent is a whole response, whatever has become of the body of the request.
        func end(hasRest: Bool) -> Promise<Void> {
            // A drain may have begun since the head was sent.
            finish(.value, response.status, request, isLast: isLast || hasRest || connection.isDraining)
        }
        if written.isFulfilled, request.framing == .none || isUnread || request.body.isComplete {
            return end(hasRest: isUnread)
        }
        return written.then {
            // What the body of the response has left of that of the request.
            if request.framing == .none || isUnread { return end(hasRest: isUnread) }
            let body = request.body
            return body.discard().recover(policy: .allErrors) { _ in Promise.value }
                .then { end(hasRest: !body.isComplete) }
        }.recover(policy: .allErrors) { [self] error in
            output.close()
            if !output.isUnsent || hasLeft(with: error, request) { throw error }
            return sendNow(failure(error, of: request), to: request, isLast: request.usedBody?.isComplete == false)
        }
    }

    // MARK: The end

    private func end(_ error: any Error) throws -> Promise<Void> {
        let hasLeft = connection.hasEnded(with: error)
        // The client sees that the response is incomplete, unless its end is that of the connection: then that is reset.
        if let request = current, request.begunStatus != nil {
            if request.isHTTP10 { connection.abort() }
            if hasLeft || Self.isOfBody(error, request) { return .value }
            throw error
        }
        switch error {
        case let upgraded as Upgraded:
            connection.frameTimeouts = nil
            return try upgraded.body(connection)
        // Between two requests.
        case StreamError.timedOut(got: 0) where current == nil: return .value
        case is HTTPError, StreamError.timedOut: return refuse(Self.response(for: error))
        // The client has ended inside of a request.
        case is StreamError, is BodyError: return .value
        default:
            if hasLeft { return .value }
            throw error
        }
    }

    /// Answers a request that is not understood. Its connection ends, since where the next request begins is unknown.
    private func refuse(_ response: Response) -> Promise<Void> {
        let sent = connection.write { appendHead(response, to: nil, isLast: true, &$0) }
        log(sent, response.status, current.take())
        // A client that has left misses nothing.
        return limited(sent).recover(policy: .allErrors) { _ in .value }
    }

    /// Ends the loop over requests: `body` continues with the connection.
    private struct Upgraded: Error {
        // unsafe: it is thrown and caught within the session, on the thread of the connection.
        nonisolated(unsafe) let body: (Connection) throws -> Promise<Void>
    }
}

extension Session: FrameDecoder {
    @usableFromInline
    func decode(_ bytes: RawSpan) throws -> DecodedFrame<Void> {
        // The bytes are lent for the call, and nothing keeps the pointer.
        try bytes.withUnsafeBytes { bytes throws(HTTPError) in
            var parser =
                partial?.parser ?? HeadParser(maxHead: service.options.maxHead, maxFields: service.options.maxFields)
            // Some clients send an empty line behind a body: RFC 9112, section 2.2.
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
