import Promises
import Reactor
import ReactorIO

/// Makes requests over connections that it keeps open per server. Use it only on its loop's thread.
///
/// ```swift
/// let client = HTTPClient()
/// client.fetch("http://example.com/").then { $0.body.text() }.done { print($0) }
/// ```
public final class HTTPClient {
    /// Time limits, size limits, proxies and TLS of requests.
    public struct Options: Sendable {
        /// The limits for connections; `makeTimeout` covers connect and handshake.
        public var connections = PoolLimits(idleTimeout: .seconds(30))
        /// The time limit from the request's end to the response's first byte, and again from there to the end of its
        /// head.
        public var firstByte: Duration? = .seconds(30)
        /// The longest pause inside a body.
        public var idle: Duration? = .seconds(30)
        /// The time limit for the whole request, including redirects and reads of the body.
        public var total: Duration?
        /// The maximum number of redirects; 0 returns the redirect itself.
        public var maxRedirects = 5
        /// Called with each redirect and its target before the client follows it. `false` returns the redirect itself;
        /// an error rejects the request. `nil` follows all redirects.
        public var willRedirect: (@Sendable (_ response: Fetched, _ address: String) throws -> Bool)?
        /// A head's maximum size in bytes.
        public var maxHead = 65_536
        /// A head's maximum number of fields.
        public var maxFields = 200
        /// The maximum size in bytes of a body read by `bytes()` or `text()`. Reads in parts have no limit unless the
        /// program sets `response.body.limit`.
        public var maxBody = 64 << 20
        /// The default field `User-Agent`; `nil` to omit it.
        public var userAgent: String? = "swift-reactor"
        /// The proxies, and the hosts reached without one.
        public var proxies = Proxies.environment
        /// Starts TLS on a connection and verifies the host's name: `{ $0.startTLS(as: tls, serverName: $1) }`. Without
        /// this closure, `https:` addresses are refused.
        public var startTLS: (@Sendable (_ connection: Connection, _ host: String) -> Promise<Connection>)?

        /// The defaults above.
        public init() {}
    }

    /// The limits.
    public let options: Options
    private let pool: Pool<Connection>
    let lookup: any NameLookup
    /// The `User-Agent` line, made once.
    let userAgent: [UInt8]
    private var last: WebOrigin?

    /// - Parameters:
    ///   - options: the limits.
    ///   - lookup: finds a name's addresses, and decides which to allow.
    @available(*, noasync, message: "call it in a synchronous function on the loop's thread")
    public init(_ options: Options = Options(), lookup: any NameLookup = SystemNameLookup.shared) {
        (self.options, self.lookup) = (options, lookup)
        var line = ByteWriter()
        if let userAgent = options.userAgent {
            line.append("User-Agent: ")
            line.append(value: userAgent)
            line.append("\r\n")
        }
        userAgent = line.bytes
        pool = Pool(limits: options.connections, lookup: lookup, via: options.route, prepare: options.prepare)
    }

    /// Makes a request.
    ///
    /// ```swift
    /// client.fetch("http://127.0.0.1:8080/login", .post, body: .text("me"))
    ///     .done { response in print(response.status) }
    /// ```
    ///
    /// Every status is a response, never an error; see `Fetched.validated`. The client follows redirects, with GET for
    /// 303, and for 301 and 302 after a POST. Another server does not get `Authorization` and `Cookie`. An idempotent
    /// request is retried on another connection if the server has closed this one.
    ///
    /// Cancelling the promise ends the request and closes its connection.
    /// - Parameters:
    ///   - address: `http://host:port/path?query`, or with `https:`. Escape bytes that a URI forbids, and write an
    ///     international host in ASCII, as `xn--bcher-kva.example`.
    ///   - method: the method.
    ///   - headers: further fields. `Host` replaces the address's host, also in a redirect to the same server.
    ///     `Connection: close` closes the connection after the response. The client omits other options of
    ///     `Connection`, and `Content-Length`, `Transfer-Encoding` and `Proxy-Authorization`, because it writes its
    ///     own.
    ///   - body: the body; `nil` for none.
    /// - Returns: a promise of the response, fulfilled when its head has arrived. Rejected with
    ///   - `FetchError`, also for a time limit;
    ///   - `HTTPError` (502) for a response that is invalid or came before the request;
    ///   - an error from a streamed body;
    ///   - `PoolError` if no connection was free in time;
    ///   - the connection's `ConnectError` or `SystemError`, or an error from TLS.
    @available(*, noasync, message: "on a loop write try await firstly { … }.value, else use a synchronous function")
    public func fetch(
        _ address: String, _ method: Method = .get, headers: Headers = Headers(), body: RequestBody? = nil
    ) -> Promise<Fetched> {
        firstly {
            let address = try WebAddress(address, like: last)
            if last !== address.origin { last = address.origin }
            guard let total = options.total else {
                return try follow(OutgoingRequest(address, method, headers, body), behind: [])
            }
            let deadline = EventLoop.current.now.advanced(by: total)
            return try follow(OutgoingRequest(address, method, headers, body, deadline: deadline), behind: [])
                .timeout(total, error: FetchError.timedOut(.total))
        }
    }

    /// - Parameter before: the earlier requests, which were redirected.
    private func follow(
        _ request: OutgoingRequest, behind before: [OutgoingRequest]
    ) throws(FetchError) -> Promise<Fetched> {
        try send(request).then { [self] response -> Promise<Fetched> in
            guard options.maxRedirects > 0, let next = try request.redirected(by: response) else {
                return .value(response)
            }
            let before = before + [request]
            if before.count > options.maxRedirects {
                let isLoop = before.contains(where: next.isRepetition)
                throw isLoop
                    ? FetchError.redirectLoop(next.address.text) : .tooManyRedirects(limit: options.maxRedirects)
            }
            if let willRedirect = options.willRedirect, try !willRedirect(response, next.address.text) {
                return .value(response)
            }
            // Reads a short body, so that the connection can be reused. A long or late one is not worth waiting for.
            let isShort = response.body.length.map { $0 <= 65_536 } ?? false
            let rest = isShort ? response.body.discard() : .value
            let rested = rest.isPending ? rest.timeout(.milliseconds(100)) : rest
            return rested.recover(policy: .allErrorsExceptCancellation) { _ throws -> Promise<Void> in .value }
                .then { try self.follow(next, behind: before) }
        }
    }

    private func send(_ request: OutgoingRequest) throws(FetchError) -> Promise<Fetched> {
        let address = request.address
        if address.isSecure, options.startTLS == nil { throw .noTLS(address.authority) }
        // For `https:`, making the connection opens the proxy's tunnel.
        let proxy = address.isSecure ? nil : try options.proxies.proxy(for: address)
        let (promise, resolver) = Promise<Fetched>.pending()
        let exchange = Exchange(request, by: proxy, self, resolver)
        // The exchange holds the connection until the body has been read, perhaps long after the head.
        let done = pool.lend((proxy?.address ?? address).origin.key, isIdempotent: request.isRepeatable) {
            exchange.run(on: $0, $1)
        }
        resolver.onCancel { done.cancel() }
        done.catch(policy: .allErrors) { exchange.end($0) }
        return promise
    }

    /// Closes idle connections now, and others once their responses have been read. Later requests are rejected.
    public func close() { pool.close() }
}

extension HTTPClient.Options {
    /// Returns the address to connect to for the server `key`: its own, or that of its tunnel's proxy.
    func route(_ key: PoolKey) throws -> PoolKey {
        let address = try WebAddress("\(key)")
        guard address.isSecure, let proxy = try proxies.proxy(for: address) else { return address.endpoint }
        return proxy.address.endpoint
    }

    func prepare(_ connection: Connection, _ key: PoolKey) throws -> Promise<Void> {
        let address = try WebAddress("\(key)")
        return address.isSecure ? try open(connection, to: address, by: try proxies.proxy(for: address)) : .value
    }

    /// Opens a tunnel through `proxy`, and starts TLS if `address` requires it.
    func open(_ connection: Connection, to address: WebAddress, by proxy: Proxy?) throws(FetchError) -> Promise<Void> {
        if address.isSecure, startTLS == nil { throw .noTLS(address.authority) }
        let opened = proxy.map { openTunnel(to: address, by: $0, connection) } ?? .value
        guard address.isSecure, let startTLS else { return opened }
        return opened.then { startTLS(connection, address.name) }.asVoid()
    }

    /// RFC 9110, section 9.3.6.
    private func openTunnel(to address: WebAddress, by proxy: Proxy, _ connection: Connection) -> Promise<Void> {
        let target = "\(address.hostForPeers):\(address.port)"
        let account = proxy.authorization.map { "Proxy-Authorization: \($0)\r\n" } ?? ""
        let sent = connection.write("CONNECT \(target) HTTP/1.1\r\nHost: \(target)\r\n\(account)\r\n")
        let parser = ResponseParser(maxHead: maxHead, maxFields: maxFields, .forTunnel)
        return sent.then { connection.readFrame(parser) }.then { head -> Promise<Void> in
            guard let head else { throw FetchError.endedEarly }
            if head.status.isSuccess { return .value }
            return head.refusal(on: connection, self).map { body in
                throw FetchError.refusedByProxy(head.status, headers: head.headers, body: body)
            }
        }
    }
}

extension HTTPClient {
    private static let shared = LockedValue.ofProcess(Options())

    /// The options for the clients of the free function `fetch`. Each loop makes its client with its first request. For
    /// `https:`, with ReactorTLS:
    ///
    /// ```swift
    /// HTTPClient.defaultOptions.startTLS = { $0.startTLS(as: tls, serverName: $1) }
    /// ```
    public static var defaultOptions: Options {
        get { shared.withLock { $0 } }
        set {
            // Releases the old closures' captures outside the lock.
            let old = shared.withLock { options in
                defer { options = newValue }
                return options
            }
            withExtendedLifetime(old) {}
        }
    }
}

private let clients = LoopLocal { HTTPClient(HTTPClient.defaultOptions) }

extension HTTPClient {
    static var ofLoop: HTTPClient {
        // Sound: the client stays on this thread, as `withValue` requires.
        nonisolated(unsafe) var client: HTTPClient?
        clients.withValue { client = $0 }
        return client!
    }
}

/// Makes a request with this loop's client, which has `HTTPClient.defaultOptions`: plain HTTP unless they set
/// `startTLS`. See `HTTPClient.fetch`.
///
/// ```swift
/// let page = try hang(fetch("http://127.0.0.1:8080/").then { $0.body.text() })
/// ```
@available(*, noasync, message: "on a loop write try await firstly { … }.value, else use a synchronous function")
public func fetch(
    _ address: String, _ method: Method = .get, headers: Headers = Headers(), body: RequestBody? = nil
) -> Promise<Fetched> {
    HTTPClient.ofLoop.fetch(address, method, headers: headers, body: body)
}
