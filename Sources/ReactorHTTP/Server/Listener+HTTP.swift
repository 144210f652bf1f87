import Promises
import Reactor
import ReactorIO

extension Connection {
    /// Answers this connection's requests with `handler`, one after the other, until the client or the server ends it:
    /// HTTP/1.1 and HTTP/1.0, RFC 9112.
    ///
    /// ```swift
    /// listener.serve(.tls(server)) { connection in
    ///     connection.serveHTTP { request in Response("Hello, world!\n") }
    /// }
    /// ```
    ///
    /// Pipelined requests are answered together, in order. Anything that two recipients could read differently is
    /// refused, with a fitting status.
    /// - Parameters:
    ///   - options: the limits.
    ///   - onError: called with a handler's error unless it is an `HTTPError`. The client gets status 500, or 503 for
    ///     `PromiseError.timedOut`. Without `onError`, `conf.logHandler` gets a `LogEvent.handlerFailed`. Neither gets
    ///     errors that a client causes by disconnecting, not reading or breaking the protocol; `options.log` shows such
    ///     requests.
    ///   - handler: returns the response to a request, or a promise of one. Called on the connection's loop.
    /// - Returns: a promise that is fulfilled when the conversation ends, or rejected with the error of a handler that
    ///   failed inside a response. The caller must then close the connection, as `serve` does.
    @available(*, noasync, message: "no loop runs the handler in an async function")
    @inlinable
    public func serveHTTP<Result: ResponseConvertible>(
        _ options: HTTPOptions = HTTPOptions(), onError: ((any Error, Connection) -> Void)? = nil,
        handler: @escaping (Request) throws -> Result, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> {
        let service = HTTPService(options, onError, isOfListener: false, file, line) { try handler($0).asAnswer() }
        return Session.serve(self, service)
    }
}

extension Listener {
    /// Serves HTTP with `handler` until the listener is closed or a signal of `serving` arrives.
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
    /// A drain closes connections that have been silent for 200 ms. On others, the response to the last request that
    /// has arrived, or to the next one, says `Connection: close`, so busy clients lose no request.
    /// - Parameters:
    ///   - options: the limits per client.
    ///   - serving: the limits of the server, TLS, and the signals that stop it; see `serve`.
    ///   - onError: called with a handler's error as in `Connection.serveHTTP`, and with an error from a handshake or
    ///     memory limit; see `serve`. Without it, `conf.logHandler` gets the handler's error as a
    ///     `LogEvent.handlerFailed`. Neither gets errors that a connected client causes; `options.log` shows such
    ///     requests.
    ///   - handler: returns the response to a request, or a promise of one. Called on the listener's loop.
    /// - Returns: the promise from `serve`.
    @discardableResult
    @available(*, noasync, message: "no loop runs the handler in an async function")
    @inlinable
    public func serveHTTP<Result: ResponseConvertible>(
        _ options: HTTPOptions = HTTPOptions(), serving: ServeOptions = ServeOptions(),
        onError: ((any Error, Connection) -> Void)? = nil, handler: @escaping (Request) throws -> Result,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<DrainResult> {
        let service = HTTPService(options, onError, isOfListener: true, file, line) { try handler($0).asAnswer() }
        return serve(
            serving, onError: service.onConnectionError,
            handler: { connection in Session.serve(connection, service) }, file: file, line: line)
    }

    /// Serves with an async `handler`, which runs in a task on this thread's loop.
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
        onError: ((any Error, Connection) -> Void)? = nil, handler: @escaping (Request) async throws -> Response,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<DrainResult> {
        serveHTTP(
            options, serving: serving, onError: onError,
            handler: { request in ResponseBox.promise { try await handler(request) } }, file: file, line: line)
    }

    /// Serves on the loops of `group`; see `serve(on:)`. Calls `handler` and `onError` on the connection's loop.
    @discardableResult
    @available(*, noasync, message: "no loop runs the handler in an async function")
    @inlinable
    public func serveHTTP<Result: ResponseConvertible & SendableMetatype>(
        on group: LoopGroup, _ options: HTTPOptions = HTTPOptions(), serving: ServeOptions = ServeOptions(),
        onError: (@Sendable (any Error, Connection) -> Void)? = nil,
        handler: @escaping @Sendable (Request) throws -> Result, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<DrainResult> {
        let service = HTTPService(options, onError, isOfListener: true, file, line) { try handler($0).asAnswer() }
        return serve(
            on: group, serving, onError: service.onConnectionError,
            handler: { connection in Session.serve(connection, service) }, file: file, line: line)
    }

    /// Serves on the loops of `group` with an async `handler`, which runs in a task on the connection's loop.
    @_disfavoredOverload
    @discardableResult
    @available(*, noasync, message: "no loop runs the handler in an async function")
    public func serveHTTP(
        on group: LoopGroup, _ options: HTTPOptions = HTTPOptions(), serving: ServeOptions = ServeOptions(),
        onError: (@Sendable (any Error, Connection) -> Void)? = nil,
        handler: @escaping @Sendable (Request) async throws -> Response, file: StaticString = #fileID,
        line: UInt = #line
    ) -> Promise<DrainResult> {
        serveHTTP(
            on: group, options, serving: serving, onError: onError,
            handler: { request in ResponseBox.promise { try await handler(request) } }, file: file, line: line)
    }
}

/// Carries a response out of a task that runs on the same thread.
// @unchecked: the task of `promise` runs on the thread whose promise it settles.
struct ResponseBox: @unchecked Sendable {
    let response: Response

    static func promise(_ body: @escaping () async throws -> Response) -> Promise<Response> {
        Promise<ResponseBox>(on: .current) { ResponseBox(response: try await body()) }.map { $0.response }
    }
}
