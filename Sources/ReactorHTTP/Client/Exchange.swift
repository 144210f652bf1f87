import Promises
import Reactor
import ReactorIO
import ReactorLibc

/// A request and its response. A retry on another connection runs the exchange again.
final class Exchange {
    private let request: OutgoingRequest
    private let proxy: Proxy?
    private let client: HTTPClient
    // The client's options, lent: a copy would retain every closure and string.
    private var options: HTTPClient.Options { _read { yield client.options } }
    /// The response's resolver; `nil` once settled. From then on nothing here may retain the response, because its
    /// release closes the connection.
    // `@exclusivity(unchecked)`: used on one thread, and unchanged during calls that could call back.
    @exclusivity(unchecked) private var resolver: Resolver<Fetched>?
    private var isAnswered: Bool { resolver == nil }
    /// True when a write of a streamed body has failed. A response that the server sent before can still be read.
    private var isCut = false
    /// The error that stopped writing the request's body.
    private var failure: (any Error)?

    init(_ request: OutgoingRequest, by proxy: Proxy?, _ client: HTTPClient, _ resolver: Resolver<Fetched>) {
        (self.request, self.proxy, self.client, self.resolver) = (request, proxy, client, resolver)
    }

    /// - Returns: a promise that settles when the response has been read or no longer can be. Its fulfilment returns
    ///   the connection to its pool.
    func run(on connection: Connection, _ lease: PoolRequest) -> Promise<Void> {
        // Input before the request may answer another client's request: RFC 9112, section 9.2.
        if !lease.isReused, connection.hasInputAlready {
            return Promise(error: HTTPError.unusable("bytes before the request"))
        }
        let parser = ResponseParser(
            maxHead: options.maxHead, maxFields: options.maxFields, request.method == .head ? .forHead : .forContent)
        // Reads while writing, since a server may answer and close before it has the whole request.
        let sent = send(on: connection)
        let limits = FrameTimeouts(idle: options.firstByte, frame: options.firstByte)
        if sent.isFulfilled {
            connection.frameTimeouts = limits
        } else {
            // A failure ends only the writes; the server's earlier output can still be read within the limits.
            sent.ensure { if !self.isAnswered { connection.frameTimeouts = limits } }
                .catch(policy: .allErrors) { [self] error in
                    // The kernel is out of memory; the server would wait for the rest.
                    guard !isAnswered, failure == nil, (error as? SystemError)?.isShortage == true else { return }
                    failure = error
                    connection.abort()
                }
        }
        let done = connection.readFrame(parser).then { head in
            guard let head else { throw FetchError.endedEarly }
            return self.begin(head, sent, on: connection, lease)
        }
        return sent.isPending ? done.ensure { sent.cancel() } : done
    }

    func end(_ error: any Error) {
        // `named` needs the resolver, so it comes first.
        let error = failure ?? named(error, timedOut: .firstByte)
        resolver.take()?.reject(error)
    }

    /// Translates an error of the connection, its pool or its reads into the client's.
    private func named(_ error: any Error, timedOut limit: FetchError.Limit) -> any Error {
        switch error {
        // The response was invalid. Its status must not reach this program's own clients.
        case let error as HTTPError: return HTTPError.unusable(error.reason)
        // The time limit for writes. The kernel's own limits, such as a connect's, have the same code.
        case let error as SystemError
        where error.code == ETIMEDOUT && [.send, .write].contains(error.call) && !isAnswered && options.idle != nil:
            return FetchError.timedOut(.idle)
        case _ where request.deadline.map { $0 <= EventLoop.current.now } == true: return FetchError.timedOut(.total)
        case StreamError.timedOut: return FetchError.timedOut(limit)
        case StreamError.endedEarly where !isAnswered: return FetchError.endedEarly
        case PromiseError.timedOut: return FetchError.timedOut(.connect)
        case let error as SocketAddress.ParseError:
            return FetchError.badAddress(request.address.text, reason: error.reason)
        default: return error
        }
    }

    private func send(on connection: Connection) -> Promise<Void> {
        if case .stream(let length, let body)? = request.body?.content { return stream(length, body, on: connection) }
        let write = connection.write(request.body?.content) {
            request.writeHead(to: &$0, by: proxy, userAgent: client.userAgent)
        }
        return connection.limit(write, idle: options.idle)
    }

    private func stream(
        _ length: Int?, _ body: (BodyOutput) throws -> Promise<Void>, on connection: Connection
    ) -> Promise<Void> {
        let output = BodyOutput(length, isChunked: length == nil) { [request, proxy, client] in
            request.writeHead(to: &$0, by: proxy, userAgent: client.userAgent)
        } send: { [self] part in
            let write = connection.limit(connection.write(part), idle: options.idle)
            if write.isFulfilled { return write }
            if write.isPending { return write.tapError { _ in self.isCut = true } }
            // A full queue is the program's fault, because it did not wait for earlier writes.
            if case .failure(let error)? = write.result, (error as? SystemError)?.code != ENOBUFS { isCut = true }
            return write
        }
        let writing = firstly { try body(output) }.then { try output.finish() }
        return writing.ensure { output.close() }.tapError { [self] error in
            if isCut { return }
            // The server must not take the request for complete.
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
        let isLast = !head.keepsAlive || request.isClosing || head.framing == .untilEnd
        let body = Body(
            head.framing, of: connection, limit: options.maxBody, maxHead: options.maxHead, isOfResponse: true,
            onEnd: { [self, headers = head.headers] error in
                if let error = error.map({ failure ?? named($0, timedOut: .idle) }) {
                    end.reject(error)
                    return error
                }
                // After an answer before the request's end, no other request can follow.
                if isLast || sent.isPending { connection.close() }
                // The connection must be free before the program sees the end and makes its next request.
                lease.giveBack(idleLimit: keepAliveTime(headers))
                end.fulfill()
                return nil
            })
        body.place = request.address
        resolver.take()?.fulfill(Fetched(status: head.status, headers: head.headers, body: body))
        // Rejecting at the deadline closes the connection, so all reads of the body fail.
        return request.deadline.map { done.timeout(EventLoop.current.now.duration(to: $0)) } ?? done
    }
}

/// Reads the server's idle limit from the field `Keep-Alive` (RFC 2068, section 19.7.1), less the time for a request to
/// arrive; `nil` without the field.
private func keepAliveTime(_ headers: Headers) -> Duration? {
    guard let field = headers.bytes("keep-alive") else { return nil }
    var time: Duration?
    field.withUnsafeBytes { bytes in
        Bytes(bytes).forEachElement { element in
            let digits = element.slice(min(8, element.count)..<element.count)
            guard time == nil, element.slice(0..<min(8, element.count)).isEqual(ignoringCase: "timeout="),
                !digits.isEmpty, digits.allSatisfy(isDigit)
            else { return }
            // Capped at a day.
            let seconds = Duration.seconds(digits.reduce(0) { min($0 * 10 + Int($1 & 15), 86_400) })
            time = seconds - min(.seconds(1), seconds / 2)
        }
    }
    return time
}

/// A server's response.
public struct Fetched {
    /// The status.
    public let status: Status
    /// The fields.
    public let headers: Headers
    /// The body. Read or release it: until then its connection serves no other request. Releasing an unread body closes
    /// the connection.
    public let body: Body

    /// The address of this response after redirects, without the fragment, and with the port unless it is the scheme's
    /// own.
    public var address: String { body.place?.text ?? "" }

    /// Returns this response if its status is from 200 to 299.
    ///
    /// ```swift
    /// fetch(address).map { try $0.validated() }.then { $0.body.bytes() }
    /// ```
    /// - Throws: `HTTPError` with any other status.
    public func validated() throws(HTTPError) -> Fetched {
        guard status.isSuccess else { throw HTTPError(status) }
        return self
    }
}
