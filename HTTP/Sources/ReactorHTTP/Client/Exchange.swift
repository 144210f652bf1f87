import Promises
import Reactor

/// One request and its response on a connection.
final class Exchange {
    private let connection: Connection
    private let request: OutgoingRequest
    private let proxy: Proxy?
    private let options: HTTPClient.Options
    /// Whether the head of the response is here.
    private var hasHead = false
    /// Whether a write of a stream has failed: what the server has said before can still be read.
    private var isCut = false
    /// Why the body of the request has not been written.
    private var failure: (any Error)?

    init(_ connection: Connection, _ request: OutgoingRequest, _ proxy: Proxy?, _ options: HTTPClient.Options) {
        self.connection = connection
        self.request = request
        self.proxy = proxy
        self.options = options
    }

    /// - Parameter response: is fulfilled when the head of the response is here.
    /// - Returns: a promise that is settled when the response has been read, or can no longer be: the connection returns to its
    ///   pool if it is fulfilled.
    func run(_ response: PendingResponse) -> Promise<Void> {
        let parser = ResponseParser(
            maxHead: options.maxHead, maxFields: options.maxFields, isToHead: request.method == .head)
        // Read meanwhile: a server may answer, and end, before it has got the whole request.
        let sent = send()
        if sent.isFulfilled { didSend() } else { sent.done { self.didSend() }.cauterize() }
        let done = connection.readFrame(parser).then { head in
            guard let head else { throw FetchError.endedEarly }
            return self.begin(head, sent, response)
        }.mapError(policy: .allErrors) { error in
            if let failure = self.failure { return failure }
            if !self.hasHead, case StreamError.timedOut = error { return FetchError.noResponse }
            return error
        }
        return sent.isPending ? done.ensure { sent.cancel() } : done
    }

    // MARK: The request

    private func send() -> Promise<Void> {
        switch request.body?.content {
        case nil: return noting(connection.write { request.writeHead(to: &$0, by: proxy) })
        case .bytes(let bytes) where bytes.count > 16_384:
            var head = ByteWriter(reserving: 1024)
            request.writeHead(to: &head, by: proxy)
            return noting(connection.write([head.bytes, bytes]))
        case .bytes(let bytes):
            return noting(
                connection.write {
                    request.writeHead(to: &$0, by: proxy)
                    $0.append(bytes)
                })
        case .stream(let length, let body): return stream(length, body)
        }
    }

    private func stream(_ length: Int?, _ body: (BodyOutput) throws -> Promise<Void>) -> Promise<Void> {
        let output = BodyOutput(length.map { .length($0) } ?? .chunked) { [request, proxy] in
            request.writeHead(to: &$0, by: proxy)
        } send: { [self] part in
            noting(connection.write(part)).tapError { _ in self.isCut = true }
        }
        let writing = firstly { try body(output) }.then { try output.finish() }
        return writing.ensure { output.close() }.tapError { [self] error in
            if isCut { return }
            // The server must not take it for a whole one.
            failure = error
            connection.abort()
        }
    }

    /// Limits the time of a write that waits for a server that does not read.
    private func noting(_ write: Promise<Void>) -> Promise<Void> {
        if !write.isPending { return write }
        connection.idleTimeout = options.idle
        return write.ensure { [connection] in connection.idleTimeout = nil }
    }

    private func didSend() {
        if hasHead { return }
        connection.frameTimeouts = FrameTimeouts(idle: options.firstByte, frame: options.firstByte)
    }

    // MARK: The response

    private func begin(_ head: ResponseHead, _ sent: Promise<Void>, _ response: PendingResponse) -> Promise<Void> {
        hasHead = true
        limitBody()
        let (done, end) = Promise<Void>.pending()
        let body = Body(
            head.framing, of: connection, limit: options.maxBody, maxHead: options.maxHead,
            onEnd: { [connection] error in
                if let error { return end.reject(error) }
                // Nothing follows a request that the server has answered before its end.
                if !head.keepsAlive || head.framing == .untilEnd || sent.isPending { connection.close() }
                end.fulfill()
            })
        response.resolver.take()?.fulfill(Fetched(status: head.status, headers: head.headers, body: body))
        return done
    }

    private func limitBody() {
        var limits = FrameTimeouts(idle: options.idle, frame: options.idle)
        if let deadline = request.deadline {
            limits.message = max(EventLoop.current.now.duration(to: deadline), .milliseconds(1))
        }
        connection.frameTimeouts = limits
        if limits.message != nil { connection.beginMessage() }
    }
}

/// The promise of a response until it is settled. Then nothing else may retain the response: its release ends its connection.
final class PendingResponse {
    fileprivate(set) var resolver: Resolver<Fetched>?

    init(_ resolver: Resolver<Fetched>) { self.resolver = resolver }
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
