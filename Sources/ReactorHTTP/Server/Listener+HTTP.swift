import Promises
import Reactor

extension Connection {
    /// Answers the requests of this connection by `handler`, one after the other, until the client or the server ends it:
    /// HTTP/1.1 and HTTP/1.0, RFC 9112.
    ///
    /// ```swift
    /// listener.serve(.tls(server)) { connection in
    ///     connection.serveHTTP { request in Response("Hello, world!\n") }
    /// }
    /// ```
    ///
    /// Requests that arrive together are answered together, in their order. What two recipients could understand differently
    /// is refused, with the status that says why.
    /// - Parameters:
    ///   - options: the limits.
    ///   - onError: is called with the error of a handler that is not an `HTTPError`; its client gets the status 500. Not with
    ///     what a client causes, which leaves, does not read or breaks the protocol: `options.log` shows its requests.
    ///   - handler: returns the response to a request, or a promise of one; called on the connection's loop.
    /// - Returns: a promise that is fulfilled when the conversation has ended. Rejected with the error of a handler that ended it
    ///   inside of a response. The caller then closes the connection, as `serve` does.
    @available(*, noasync, message: "no loop runs the handler in an async function")
    @inlinable
    public func serveHTTP<Result: ResponseConvertible>(
        _ options: HTTPOptions = HTTPOptions(), onError: ((any Error, Connection) -> Void)? = nil,
        handler: @escaping (Request) throws -> Result
    ) -> Promise<Void> { Session.serve(self, Service(options, onError) { try handler($0).asAnswer() }) }
}

extension Listener {
    /// Serves HTTP by `handler`, until the listener is closed or one of the signals of `serving` arrives.
    ///
    /// ```swift
    /// let served = listener.serveHTTP(serving: .untilStopped) { request in
    ///     switch request.path {
    ///     case "/": Response("Hello, world!\n")
    ///     default: Response(.notFound)
    ///     }
    /// }
    /// try hang(served)
    /// ```
    ///
    /// In a drain, connections without a request end, and the others with the response, which says `Connection: close`.
    /// - Parameters:
    ///   - options: the limits of a client.
    ///   - serving: the limits of the server, TLS, and what stops it; see `serve`.
    ///   - onError: is called with the error of a handler that is not an `HTTPError`, and of a handshake or a memory limit; see
    ///     `serve`. Not with what a client causes once it is connected: `options.log` shows its requests.
    ///   - handler: returns the response to a request, or a promise of one; called on the loop of the listener.
    /// - Returns: as `serve`.
    @discardableResult
    @available(*, noasync, message: "no loop runs the handler in an async function")
    @inlinable
    public func serveHTTP<Result: ResponseConvertible>(
        _ options: HTTPOptions = HTTPOptions(), serving: ServeOptions = ServeOptions(),
        onError: ((any Error, Connection) -> Void)? = nil, handler: @escaping (Request) throws -> Result
    ) -> Promise<DrainResult> {
        let service = Service(options, onError) { try handler($0).asAnswer() }
        return serve(serving, onError: service.onConnectionError) { connection in Session.serve(connection, service) }
    }

    /// As the form with promises, with an async `handler`, which runs in a task on this thread's loop.
    ///
    /// ```swift
    /// listener.serveHTTP { request async throws in
    ///     let order = try await request.body.text().value
    ///     return Response(try await shop.place(order))
    /// }
    /// ```
    @_disfavoredOverload
    @discardableResult
    @available(*, noasync, message: "no loop runs the handler in an async function")
    public func serveHTTP(
        _ options: HTTPOptions = HTTPOptions(), serving: ServeOptions = ServeOptions(),
        onError: ((any Error, Connection) -> Void)? = nil, handler: @escaping (Request) async throws -> Response
    ) -> Promise<DrainResult> {
        serveHTTP(options, serving: serving, onError: onError) { request in
            ResponseBox.promise { try await handler(request) }
        }
    }

    /// As the form of one loop, on the loops of `group`; see `serve(on:)`. `handler` and `onError` are called on the loop of the
    /// connection.
    @discardableResult
    @available(*, noasync, message: "no loop runs the handler in an async function")
    @inlinable
    public func serveHTTP<Result: ResponseConvertible & SendableMetatype>(
        on group: LoopGroup, _ options: HTTPOptions = HTTPOptions(), serving: ServeOptions = ServeOptions(),
        onError: (@Sendable (any Error, Connection) -> Void)? = nil,
        handler: @escaping @Sendable (Request) throws -> Result
    ) -> Promise<DrainResult> {
        let service = Service(options, onError) { try handler($0).asAnswer() }
        return serve(on: group, serving, onError: service.onConnectionError) { connection in
            Session.serve(connection, service)
        }
    }

    /// As the form with promises, with an async `handler`: each runs in a task on the loop of its connection.
    @_disfavoredOverload
    @discardableResult
    @available(*, noasync, message: "no loop runs the handler in an async function")
    public func serveHTTP(
        on group: LoopGroup, _ options: HTTPOptions = HTTPOptions(), serving: ServeOptions = ServeOptions(),
        onError: (@Sendable (any Error, Connection) -> Void)? = nil,
        handler: @escaping @Sendable (Request) async throws -> Response
    ) -> Promise<DrainResult> {
        serveHTTP(on: group, options, serving: serving, onError: onError) { request in
            ResponseBox.promise { try await handler(request) }
        }
    }
}

/// A response on its way out of a task on its own thread.
// @unchecked: the task of `promise` runs on the thread whose promise it settles.
struct ResponseBox: @unchecked Sendable {
    let response: Response

    static func promise(_ body: @escaping () async throws -> Response) -> Promise<Response> {
        Promise<ResponseBox>(on: .current) { ResponseBox(response: try await body()) }.map { $0.response }
    }
}
