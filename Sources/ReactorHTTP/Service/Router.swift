import Promises

/// Finds the handler of a request by its method and its path.
///
/// ```swift
/// let service = Router()
/// service.on(.get, "/notes/{id}") { request in
///     Response(try notes.text(of: request.pathParameters.value("id", as: Int.self)))
/// }
/// service.on(.post, "/notes") { request in request.body.text().map { try notes.add($0) } }
/// listener.serveHTTP { request in service.respond(to: request) }
/// ```
///
/// A segment in braces is a parameter, and matches any segment that is not empty; `{name...}` at the end matches the
/// whole rest, with its escapes, as `StaticFiles` takes it. Where several paths match, a literal segment wins over a
/// parameter, and that over a rest. A trailing slash counts, and `.` and `..` match nothing.
///
/// HEAD is answered by the handler of GET, a method that the path does not have with 405 and `Allow`, and an unknown
/// path with 404. These, and every error of a handler, are sent as `Response.problem`.
///
/// A router and its handlers belong to one thread: for `serveHTTP(on: group)` make one on each loop, as a value of a
/// `LoopLocal`.
public final class Router {
    /// Answers a request with its handler; for middleware to call.
    public typealias Next = (Request) -> Promise<Response>

    private let root: RouteNode
    private let prefix: String
    private let around: [(Request, @escaping Next) throws -> Promise<Response>]

    private init(
        _ root: RouteNode, _ prefix: String, _ around: [(Request, @escaping Next) throws -> Promise<Response>]
    ) { (self.root, self.prefix, self.around) = (root, prefix, around) }

    /// A router without routes.
    public convenience init() { self.init(RouteNode(), "", []) }

    /// The routes below `prefix`, with middleware around their handlers: before them, after them, or in their place.
    ///
    /// ```swift
    /// let admin = service.group("/admin") { request, next in
    ///     guard isAdmin(request) else { throw HTTPError(.unauthorized) }
    ///     return next(request).tap { result in log(request, result) }
    /// }
    /// admin.on(.get, "/users") { _ in Response(list) }
    /// ```
    ///
    /// The middleware of a nested group runs inside the outer one's.
    /// - Parameters:
    ///   - prefix: begins with a slash, or is empty.
    ///   - around: called with each request of the group and the function that answers it.
    public func group(
        _ prefix: String, around: ((Request, @escaping Next) throws -> Promise<Response>)? = nil
    ) -> Router { Router(root, self.prefix + prefix, self.around + (around.map { [$0] } ?? [])) }

    /// Adds a route. Traps if the route exists already, or if `path` is invalid.
    /// - Parameters:
    ///   - method: the method; GET also answers HEAD.
    ///   - path: begins with a slash; appended to the prefix of the group.
    ///   - handler: returns the response, or a promise of one. It is called on the loop of the connection.
    public func on<Result: ResponseConvertible>(
        _ method: Method, _ path: String, _ handler: @escaping (Request) throws -> Result
    ) {
        var answer: (Request) throws -> Answer = { try handler($0).asAnswer() }
        for around in around.reversed() {
            let inner = answer
            answer = { request in .later(try around(request) { request in firstly { try inner(request).promise } }) }
        }
        root.add(method, prefix + path, answer)
    }

    /// As the form with promises, with an async `handler`, which runs in a task on this thread's loop.
    @_disfavoredOverload
    public func on(_ method: Method, _ path: String, _ handler: @escaping (Request) async throws -> Response) {
        on(method, path) { request in ResponseBox.promise { try await handler(request) } }
    }

    /// The response of the handler of `request`. Without a socket:
    ///
    /// ```swift
    /// let response = try hang(service.respond(to: Request(.get, "/notes/7")).promise)
    /// assert(response.status == .notFound)
    /// ```
    /// - Returns: a response, or a promise of one. Rejected with a handler's error that is not an `HTTPError`; a client
    ///   sees 500, and `onError` gets the error.
    public func respond(to request: Request) -> Answer {
        request.storage.routing = Parameters(refusal: .notFound)
        var allowed: Set<String> = []
        guard let (route, values) = root.find(request.method, request.path, &allowed) else {
            if allowed.isEmpty { return .now(.problem(.notFound)) }
            if allowed.contains("GET") { allowed.insert("HEAD") }
            return .now(.problem(.methodNotAllowed, headers: ["Allow": allowed.sorted().joined(separator: ", ")]))
        }
        for (name, value) in zip(route.names, values) { request.storage.routing?.append(name, value) }
        do {
            switch try route.handler(request) {
            case .now(let response): return .now(response)
            case .later(let promise):
                return .later(promise.recover(only: HTTPError.self) { .value(.problem($0.status, $0.detail)) })
            }
        } catch let error as HTTPError { return .now(.problem(error.status, error.detail)) } catch {
            return .later(Promise(error: error))
        }
    }
}

extension Answer {
    /// This promise, or one fulfilled with the response.
    public var promise: Promise<Response> {
        switch self {
        case .now(let response): .value(response)
        case .later(let promise): promise
        }
    }
}
