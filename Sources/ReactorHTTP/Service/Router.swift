import Promises
import ReactorIO

/// Finds a request's handler by method and path.
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
/// A segment in braces is a parameter, and matches any segment that is not empty. `{name...}` at the end matches the
/// whole rest, still escaped, as for `StaticFiles`. A literal segment wins over a parameter, and a parameter over a
/// rest. A trailing slash counts.
///
/// Segments are compared unescaped, and parameters are unescaped: `a%2Fb` is `a/b`. A path with a segment `.` or `..`,
/// also between escaped slashes, matches nothing, so no parameter leads out of a folder.
///
/// The handler for GET answers HEAD. A known path without the method gets 405 and `Allow`; an unknown path gets 404. An
/// OPTIONS route for the whole rest, such as `/{path...}`, makes no path known. These answers, and every handler's
/// error, are sent as `Response.problem`. Filters see them as answers: see `group`.
///
/// A router and its handlers belong to one thread. For `serveHTTP(on: group)` make one router per loop, in a
/// `LoopLocal`.
public final class Router {
    /// Passes a request from a filter to its handler.
    ///
    /// A handler's error has already become an answer, as in `respond`. The promise is rejected only if the client has
    /// disconnected.
    public typealias Next = (Request) -> Promise<Response>

    /// Code before, after or instead of the answers to requests.
    public typealias Filter = (Request, @escaping Next) throws -> Promise<Response>

    private let root: RouteNode
    private let prefix: String
    private let filters: Filters

    /// A group's filters, outermost first.
    struct Filters {
        var all: [Filter] = []
        /// The innermost group with a filter.
        var group = 0
    }

    private init(_ root: RouteNode, _ prefix: String, in outer: Filters, _ around: Filter?) {
        (self.root, self.prefix) = (root, prefix)
        guard let around else {
            filters = outer
            return
        }
        filters = Filters(all: outer.all + [around], group: root.takeNumber())
        root.add(filters, around: prefix, inside: outer.group)
    }

    /// A router without routes.
    /// - Parameter around: the filter around all answers, also for unknown paths.
    public convenience init(around: Filter? = nil) { self.init(RouteNode(), "", in: Filters(), around) }

    /// Makes a router for the routes below `prefix`, with a filter around their answers.
    ///
    /// ```swift
    /// let admin = service.group("/admin") { request, next in
    ///     guard isAdmin(request) else { throw HTTPError(.unauthorized, headers: ["WWW-Authenticate": "Basic"]) }
    ///     return next(request).map { response in
    ///         var response = response
    ///         response.headers["Cache-Control"] = "no-store"
    ///         return response
    ///     }
    /// }
    /// admin.on(.get, "/users") { _ in Response(list) }
    /// ```
    ///
    /// A nested group's filter runs inside the outer group's. The router's own answers, 404 and 405, get the filters of
    /// the group with the longest prefix of the path. If several have this prefix, the first counts, then the first in
    /// it that adds no prefix.
    /// - Parameters:
    ///   - prefix: begins with a slash, or is empty.
    ///   - around: called with each request of the group, and the function that answers it. An error from `around`
    ///     becomes an answer like a handler's.
    public func group(_ prefix: String, around: Filter? = nil) -> Router {
        Router(root, self.prefix + prefix, in: filters, around)
    }

    /// Adds a route. Traps if it exists already, or `path` is invalid.
    /// - Parameters:
    ///   - method: the method; GET also answers HEAD.
    ///   - path: begins with a slash; appended to the group's prefix.
    ///   - handler: returns the response or a promise of one. Called on the connection's loop.
    public func on<Result: ResponseConvertible>(
        _ method: Method, _ path: String, _ handler: @escaping (Request) throws -> Result
    ) { root.add(method, prefix + path, filters.all.around { try handler($0).asAnswer() }) }

    /// Adds a route with an async `handler`, which runs in a task on this thread's loop.
    @_disfavoredOverload
    public func on(_ method: Method, _ path: String, _ handler: @escaping (Request) async throws -> Response) {
        on(method, path) { request in ResponseBox.promise { try await handler(request) } }
    }

    /// Responds to `request` with its handler. Without a socket:
    ///
    /// ```swift
    /// let response = try hang(service.respond(to: Request(.get, "/notes/7")).promise)
    /// assert(response.status == .notFound)
    /// ```
    /// - Returns: a response or a promise of one. An `HTTPError` from the handler becomes an answer with its status and
    ///   fields. Another error becomes 500, or 503 for `PromiseError.timedOut`, and the server's `onError` or else
    ///   `conf.logHandler` gets it. The promise is rejected only if the client has disconnected.
    public func respond(to request: Request) -> Answer {
        var allowed = AllowedMethods()
        let found = root.find(request.method, request.path, &allowed)
        request.storage.note(found?.parameters ?? Parameters(refusal: .notFound), route: found?.route.path)
        if let found { return found.route.handler(request) }
        return root.filters(around: request.path).around { _ in .now(allowed.refusal) }(request)
    }
}

extension [Router.Filter] {
    /// Wraps `handler` in these filters, outermost first, and turns each of their errors into an answer.
    fileprivate func around(_ handler: @escaping (Request) throws -> Answer) -> (Request) -> Answer {
        reversed().reduce({ request in request.answer { try handler(request) } }) { inner, filter in
            { request in request.answer { .later(try filter(request) { inner($0).promise }) } }
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
