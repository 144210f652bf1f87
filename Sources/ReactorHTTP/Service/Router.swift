import Promises
import ReactorIO

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
/// A segment is compared without its escapes, and a parameter is the decoded segment: `a%2Fb` is `a/b`. A path matches
/// nothing if `.` or `..` is between two of its slashes, escaped ones included: no parameter leads out of a folder.
///
/// HEAD is answered by the handler of GET, a method that the path does not have with 405 and `Allow`, and an unknown
/// path with 404; an OPTIONS for the whole rest, such as `/{path...}`, makes no path known. These, and every error of a
/// handler, are sent as `Response.problem`. A filter sees each of them as an answer: see `group`.
///
/// A router and its handlers belong to one thread: for `serveHTTP(on: group)` make one on each loop, as a value of a
/// `LoopLocal`.
public final class Router {
    /// Answers a request with its handler; for filters to call.
    ///
    /// An error of the handler has become an answer already: an `HTTPError` has its status and its fields,
    /// `PromiseError.timedOut` is 503, and any other is 500; `onError` has got the latter two. The promise is rejected
    /// only if the client has left.
    public typealias Next = (Request) -> Promise<Response>

    /// Code around the answers to requests: before them, after them, or in their place.
    public typealias Filter = (Request, @escaping Next) throws -> Promise<Response>

    private let root: RouteNode
    private let prefix: String
    private let filters: Filters

    /// The filters of a group, the outermost first.
    struct Filters {
        var all: [Filter] = []
        /// Of the innermost group that has one.
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
    /// - Parameter around: the filter around all answers, of unknown paths too.
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
    /// The filter of a nested group runs inside the outer one's. The router's own answers, 404 and 405, have the filters
    /// of the group with the longest prefix of the path: of the first one with this prefix, and of the first one in it
    /// that adds no prefix.
    /// - Parameters:
    ///   - prefix: begins with a slash, or is empty.
    ///   - around: called with each request of the group and the function that answers it. Its own error becomes an
    ///     answer as a handler's does.
    public func group(_ prefix: String, around: Filter? = nil) -> Router {
        Router(root, self.prefix + prefix, in: filters, around)
    }

    /// Adds a route. Traps if the route exists already, or if `path` is invalid.
    /// - Parameters:
    ///   - method: the method; GET also answers HEAD.
    ///   - path: begins with a slash; appended to the prefix of the group.
    ///   - handler: returns the response, or a promise of one. It is called on the loop of the connection.
    public func on<Result: ResponseConvertible>(
        _ method: Method, _ path: String, _ handler: @escaping (Request) throws -> Result
    ) { root.add(method, prefix + path, filters.all.around { try handler($0).asAnswer() }) }

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
    /// - Returns: a response, or a promise of one. An error of a handler that is not an `HTTPError` becomes 500, or 503 if
    ///   it is `PromiseError.timedOut`; `onError` of the server gets it, or else `conf.logHandler`. The promise is
    ///   rejected only if the client has left.
    public func respond(to request: Request) -> Answer {
        var allowed = AllowedMethods()
        let found = root.find(request.method, request.path, &allowed)
        request.storage.note(found?.parameters ?? Parameters(refusal: .notFound), route: found?.route.path)
        if let found { return found.route.handler(request) }
        return root.filters(around: request.path).around { _ in .now(allowed.refusal) }(request)
    }
}

extension [Router.Filter] {
    /// `handler` with these filters, the first of which is the outermost, and with an answer for each of their errors.
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
