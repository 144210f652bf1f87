import Glibc
import Promises
import Reactor

/// One request and its response. A request that is made again, on another connection, runs once more.
final class Exchange {
    private let request: OutgoingRequest
    private let proxy: Proxy?
    private let options: HTTPClient.Options
    private let userAgent: [UInt8]
    /// That of the response, until it is settled. Then nothing here may retain the response: its release ends its connection.
    private var resolver: Resolver<Fetched>?
    /// Whether a write of a stream has failed: what the server has said before can still be read.
    private var isCut = false
    /// Why the body of the request has not been written.
    private var failure: (any Error)?

    init(_ request: OutgoingRequest, by proxy: Proxy?, _ client: HTTPClient, _ resolver: Resolver<Fetched>) {
        (self.request, self.proxy, self.resolver) = (request, proxy, resolver)
        (options, userAgent) = (client.options, client.userAgent)
    }

    /// - Parameter lease: that of the connection.
    /// - Returns: a promise that is settled when the response has been read, or can no longer be: the connection returns to its
    ///   pool if it is fulfilled.
    func run(on connection: Connection, _ lease: PoolRequest) -> Promise<Void> {
        // RFC 9112, section 9.2: it may be that of another client.
        if !lease.isReused, connection.hasInputAlready {
            return Promise(error: HTTPError(Status(502), "bytes before the request"))
        }
        let parser = ResponseParser(
            maxHead: options.maxHead, maxFields: options.maxFields, isToHead: request.method == .head)
        // Read meanwhile: a server may answer, and end, before it has got the whole request.
        let sent = send(on: connection)
        let limits = FrameTimeouts(idle: options.firstByte, frame: options.firstByte)
        if sent.isFulfilled {
            connection.frameTimeouts = limits
        } else {
            // A failure is that of the connection, too.
            sent.done { if self.resolver != nil { connection.frameTimeouts = limits } }
                .catch(policy: .allErrors) { _ in }
        }
        let done = connection.readFrame(parser).then { head in
            guard let head else { throw FetchError.endedEarly }
            return self.begin(head, sent, on: connection, lease)
        }
        return sent.isPending ? done.ensure { sent.cancel() } : done
    }

    /// There will be no response.
    func end(_ error: any Error) {
        // Named while the resolver is here.
        let error = failure ?? named(error, timedOut: .firstByte)
        resolver.take()?.reject(error)
    }

    /// The error of the client for one of the connection, its pool or its reads.
    private func named(_ error: any Error, timedOut limit: FetchError.Limit) -> any Error {
        switch error {
        // A response that no server may send, whatever this program sends its own clients.
        case let error as HTTPError: return HTTPError(Status(502), error.reason)
        // While the request is written.
        case let error as SystemError where error.code == ETIMEDOUT && resolver != nil && options.idle != nil:
            return FetchError.timedOut(.idle)
        case _ where request.deadline.map { $0 <= EventLoop.current.now } == true: return FetchError.timedOut(.total)
        case StreamError.timedOut: return FetchError.timedOut(limit)
        case StreamError.endedEarly where resolver != nil: return FetchError.endedEarly
        case PromiseError.timedOut: return FetchError.timedOut(.connect)
        case let error as SocketAddress.ParseError:
            return FetchError.badAddress(request.address.text, reason: error.reason)
        default: return error
        }
    }

    private func send(on connection: Connection) -> Promise<Void> {
        if case .stream(let length, let body)? = request.body?.content { return stream(length, body, on: connection) }
        let write = connection.write(request.body?.content) {
            request.writeHead(to: &$0, by: proxy, userAgent: userAgent)
        }
        return connection.limit(write, idle: options.idle)
    }

    private func stream(
        _ length: Int?, _ body: (BodyOutput) throws -> Promise<Void>, on connection: Connection
    ) -> Promise<Void> {
        let output = BodyOutput(length, isChunked: length == nil) { [request, proxy, userAgent] in
            request.writeHead(to: &$0, by: proxy, userAgent: userAgent)
        } send: { [self] part in
            let write = connection.limit(connection.write(part), idle: options.idle)
            if write.isFulfilled { return write }
            if write.isPending { return write.tapError { _ in self.isCut = true } }
            // What a full queue refuses is the program's, which has not waited for the writes before.
            if case .failure(let error)? = write.result, (error as? SystemError)?.code != ENOBUFS { isCut = true }
            return write
        }
        let writing = firstly { try body(output) }.then { try output.finish() }
        return writing.ensure { output.close() }.tapError { [self] error in
            if isCut { return }
            // The server must not take it for a whole one.
            failure = error
            connection.abort()
        }
    }

    private func begin(
        _ head: ResponseHead, _ sent: Promise<Void>, on connection: Connection, _ lease: PoolRequest
    ) -> Promise<Void> {
        let limits = FrameTimeouts(idle: options.idle, frame: options.idle)
        if connection.frameTimeouts != limits { connection.frameTimeouts = limits }
        let (done, end) = Promise<Void>.pending()
        let body = Body(
            head.framing, of: connection, limit: options.maxBody, maxHead: options.maxHead, isOfResponse: true,
            onEnd: { [self] error in
                if let error = error.map({ named($0, timedOut: .idle) }) {
                    end.reject(error)
                    return error
                }
                // Nothing follows a request that the server has answered before its end.
                if !head.keepsAlive || request.isClosing || head.framing == .untilEnd || sent.isPending {
                    connection.close()
                }
                // Before the program learns of the end, and makes its next request.
                lease.giveBack()
                end.fulfill()
                return nil
            })
        resolver.take()?.fulfill(Fetched(status: head.status, headers: head.headers, body: body))
        // Its rejection closes the connection, so that a read of the body fails, whether it waits or comes later.
        return request.deadline.map { done.timeout(EventLoop.current.now.duration(to: $0)) } ?? done
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
