import Promises

/// One request and its response on a connection.
final class Exchange {
    private let connection: Connection
    private let request: OutgoingRequest
    private let options: HTTPClient.Options

    init(_ connection: Connection, _ request: OutgoingRequest, _ options: HTTPClient.Options) {
        self.connection = connection
        self.request = request
        self.options = options
    }

    /// - Parameter response: is settled when the head of the response is here.
    /// - Returns: a promise that is settled when the response has been read, or can no longer be: the connection returns to its
    ///   pool if it is fulfilled.
    func run(_ response: Resolver<Fetched>) -> Promise<Void> {
        let parser = ResponseParser(
            maxHead: options.maxHead, maxFields: options.maxFields, isToHead: request.method == .head)
        // Read meanwhile: a server may answer, and end, before it has got the whole request.
        let sent = send()
        connection.idleTimeout = sent.isPending ? options.idle : nil
        sent.done { [connection, options] in
            connection.idleTimeout = nil
            connection.frameTimeouts = FrameTimeouts(idle: options.firstByte, frame: options.firstByte)
        }.cauterize()
        return readHead(parser).then { head in self.begin(head, response) }
            .recover { error -> Promise<Void> in
                if case StreamError.timedOut = error { throw FetchError.noResponse }
                throw error
            }
    }

    private func send() -> Promise<Void> {
        guard let body = request.body, body.count > 16_384 else { return connection.write { request.write(to: &$0) } }
        var head = ByteWriter(reserving: 1024)
        request.write(to: &head)
        return connection.write([head.bytes, body])
    }

    /// The head of the final response: others, such as `103 Early Hints`, precede it.
    private func readHead(_ parser: ResponseParser) -> Promise<ResponseHead> {
        connection.readFrame(parser).then { head -> Promise<ResponseHead> in
            guard let head else { throw FetchError.endedEarly }
            if head.status.code == 101 { throw HTTPError.bad("an upgrade that nobody has asked for") }
            return head.status.code < 200 ? self.readHead(parser) : .value(head)
        }
    }

    private func begin(_ head: ResponseHead, _ response: Resolver<Fetched>) -> Promise<Void> {
        connection.frameTimeouts = FrameTimeouts(idle: options.idle, frame: options.idle)
        connection.idleTimeout = nil
        let (done, end) = Promise<Void>.pending()
        let body = Body(
            head.framing, of: connection, limit: options.maxBody, maxHead: options.maxHead,
            onEnd: { [connection] error in
                if let error { return end.reject(error) }
                if !head.keepsAlive || head.framing == .untilEnd { connection.close() }
                end.fulfill()
            })
        response.fulfill(Fetched(status: head.status, headers: head.headers, body: body))
        return done
    }
}

/// The response of a server.
public struct Fetched {
    /// The status.
    public let status: Status
    /// The fields.
    public let headers: Headers
    /// The body. Read it, or release it: until then its connection serves no other request. One that is released unread ends the
    /// connection.
    public let body: Body

    /// This response if its status is from 200 to 299.
    ///
    /// ```swift
    /// fetch(address).map { try $0.validated() }.then { $0.body.bytes() }
    /// ```
    /// - Throws: `HTTPError` with the status otherwise.
    public func validated() throws(HTTPError) -> Fetched {
        guard status.isSuccess else { throw HTTPError(status) }
        return self
    }
}
