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
/// whole rest with its escapes, as for `StaticFiles`. A literal segment wins over a parameter, and a parameter over a
/// rest. A trailing slash counts, and `.` and `..` match nothing.
///
/// A segment is compared without its escapes, and a parameter is the decoded segment: `a%2Fb` is `a/b`. A path with `.`
/// or `..` between two slashes, escaped ones included, matches nothing, so no parameter leads out of a folder.
///
/// GET's handler answers HEAD. A method that the path lacks gets 405 and `Allow`, an unknown path 404. An OPTIONS for
/// the whole rest, such as `/{path...}`, makes no path known. These answers, and every handler's error, are sent as
/// `Response.problem`. A filter sees each as an answer: see `group`.
///
/// A router and its handlers belong to one thread. For `serveHTTP(on: group)` make one per loop, in a `LoopLocal`.
public final class Router {
    /// Answers a request with its handler, for filters.
    ///
    /// A handler's error has become an answer already: an `HTTPError` has its status and fields,
    /// `PromiseError.timedOut` is 503, and others are 500. `onError` got the latter two. The promise is rejected only
    /// if the client has left.
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

    /// The routes below `prefix`, with a filter around their answers.
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
    /// A nested group's filter runs inside the outer one's. The router's own answers, 404 and 405, have the filters of
    /// the group with the longest prefix of the path: the first with this prefix, and the first in it that adds no
    /// prefix.
    /// - Parameters:
    ///   - prefix: begins with a slash, or is empty.
    ///   - around: called with each request of the group, and the function that answers it. Its own error becomes an
    ///     answer like a handler's.
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

    /// The form with an async `handler`, which runs in a task on this thread's loop.
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
    /// - Returns: a response or a promise of one. A handler's error other than `HTTPError` becomes 500, or 503 for
    ///   `PromiseError.timedOut`, and the server's `onError` or else `conf.logHandler` gets it. The promise is rejected
    ///   only if the client has left.
    public func respond(to request: Request) -> Answer {
        var allowed = AllowedMethods()
        let found = root.find(request.method, request.path, &allowed)
        request.storage.note(found?.parameters ?? Parameters(refusal: .notFound), route: found?.route.path)
        if let found { return found.route.handler(request) }
        return root.filters(around: request.path).around { _ in .now(allowed.refusal) }(request)
    }
}

extension [Router.Filter] {
    /// `handler` with these filters, outermost first, and an answer for each of their errors.
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
