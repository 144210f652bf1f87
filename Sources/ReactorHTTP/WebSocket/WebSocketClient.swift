import Promises
import Reactor
import ReactorIO

extension HTTPClient {
    /// Opens a WebSocket.
    ///
    /// ```swift
    /// client.webSocket("ws://127.0.0.1:8080/chat").then { socket in
    ///     socket.send("hello")
    ///     return socket.forEach { message in print(message) }.ensure { socket.close() }
    /// }
    /// ```
    ///
    /// Uses the client's proxies, `startTLS`, head limits and `User-Agent`. `connections.makeTimeout` limits the
    /// connect with the TLS handshake; `firstByte` limits the WebSocket handshake. The socket owns its connection,
    /// which does not count towards the client's limits, closes with the socket, and outlives the client. Redirects are
    /// not followed.
    ///
    /// The socket reads until it is closed, even without a reference: `close` it when you are done.
    /// - Parameters:
    ///   - address: `ws://host:port/path?query`, or with `wss:`.
    ///   - protocols: this side's subprotocols, preferred first; `subprotocol` is the server's choice.
    ///   - headers: further handshake fields, such as `Authorization` or `Origin`.
    ///   - limit: the maximum size in bytes of a message from the server.
    ///   - idle: the server's silence after which a ping is sent. The connection closes after the same time again
    ///     without a frame, or if the server reads nothing for as long. `nil` for no limit.
    /// - Returns: a promise of the socket, with the same errors as `fetch`, or `FetchError.refusedWebSocket`, which has
    ///   the server's response.
    @available(*, noasync, message: "on a loop write try await firstly { … }.value, else use a synchronous function")
    public func webSocket(
        _ address: String, protocols: [String] = [], headers: Headers = Headers(), limit: Int = 1 << 20,
        idle: Duration? = .seconds(120)
    ) -> Promise<WebSocket> {
        firstly {
            let handshake = try WebSocketRequest(address, protocols: protocols, headers)
            let address = handshake.request.address
            let proxy = try options.proxies.proxy(for: address)
            // Refuses before anything is opened.
            if address.isSecure, options.startTLS == nil { throw FetchError.noTLS(address.authority) }
            let connecting = connect(to: (proxy?.address ?? address).endpoint, lookup: lookup)
                .then { [options] connection in
                    aborting(connection) { try options.open(connection, to: address, by: proxy).map { connection } }
                }
            let time = options.connections.makeTimeout
            let connected = time.map { connecting.timeout($0, error: FetchError.timedOut(.connect)) } ?? connecting
            return connected.then { [options, userAgent] connection in
                aborting(connection) { handshake.run(on: connection, options, userAgent) }.map { subprotocol in
                    let socket = WebSocket(
                        connection, limit: limit, idle: idle, subprotocol: subprotocol, isClient: true)
                    socket.startReading()
                    return socket
                }
            }
        }.recover(policy: .allErrors) { error in
            switch error {
            case let error as HTTPError: throw HTTPError.unusable(error.reason)
            case StreamError.endedEarly: throw FetchError.endedEarly
            case StreamError.timedOut: throw FetchError.timedOut(.firstByte)
            case let error as SocketAddress.ParseError: throw FetchError.badAddress(address, reason: error.reason)
            default: throw error
            }
        }
    }
}

/// Opens a WebSocket with this loop's client, which has `HTTPClient.defaultOptions`: only `ws:` unless they set
/// `startTLS`. See `HTTPClient.webSocket`.
///
/// ```swift
/// let socket = try hang(connectWebSocket(to: "ws://127.0.0.1:8080/chat"))
/// ```
@available(*, noasync, message: "on a loop write try await firstly { … }.value, else use a synchronous function")
public func connectWebSocket(
    to address: String, protocols: [String] = [], headers: Headers = Headers(), limit: Int = 1 << 20,
    idle: Duration? = .seconds(120)
) -> Promise<WebSocket> {
    HTTPClient.ofLoop.webSocket(address, protocols: protocols, headers: headers, limit: limit, idle: idle)
}

extension WebSocketRequest {
    fileprivate func run(
        on connection: Connection, _ options: HTTPClient.Options, _ userAgent: [UInt8]
    ) -> Promise<String?> {
        if connection.hasInputAlready { return Promise(error: HTTPError.unusable("bytes before the request")) }
        connection.frameTimeouts = FrameTimeouts(idle: options.firstByte, frame: options.firstByte)
        let parser = ResponseParser(maxHead: options.maxHead, maxFields: options.maxFields, .forUpgrade)
        return connection.write { write(to: &$0, userAgent: userAgent) }
            .then { connection.readFrame(parser) }
            .then { head -> Promise<String?> in
                guard let head else { throw FetchError.endedEarly }
                if head.status.code == 101 { return .value(try subprotocol(of: head)) }
                return head.refusal(on: connection, options).map { body in
                    throw FetchError.refusedWebSocket(head.status, headers: head.headers, body: body)
                }
            }
    }
}

/// Aborts the connection if the promise of `body` is rejected or cancelled.
private func aborting<Value>(_ connection: Connection, _ body: () throws -> Promise<Value>) -> Promise<Value> {
    firstly(body).tapError(policy: .allErrors) { _ in connection.abort() }
}
