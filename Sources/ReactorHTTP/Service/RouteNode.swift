struct Route {
    let path: String
    let handler: (Request) -> Answer
    let names: [String]
}

struct AllowedMethods {
    private var methods: Set<String> = []
    /// True when a route other than a catch-all OPTIONS route, as for CORS, matches the path.
    private var isKnown = false

    mutating func add(_ routes: some Sequence<Method>, isRest: Bool) {
        for method in routes {
            methods.insert(method.name)
            if !isRest || method != .options { isKnown = true }
        }
        if methods.contains("GET") { methods.insert("HEAD") }
    }

    var refusal: Response {
        if !isKnown { return .problem(.notFound) }
        return .problem(.methodNotAllowed, headers: ["Allow": methods.sorted().joined(separator: ", ")])
    }
}

/// The routes below a path prefix.
final class RouteNode {
    /// Children by the next path segment's bytes, without escapes. As `String`s, Unicode-equivalent texts would be
    /// equal.
    private var parts: [[UInt8]: RouteNode] = [:]
    private var parameter: RouteNode?
    private var tail: RouteNode?
    /// The routes that end here, by method.
    private var routes: [Method: Route] = [:]
    /// The filters around the router's own answers below this prefix.
    private var filters = Router.Filters()
    /// The number of groups with filters; kept in the root.
    private var groups = 0

    private static var slash: UInt8 { UInt8(ascii: "/") }

    func add(_ method: Method, _ path: String, _ handler: @escaping (Request) -> Answer) {
        precondition(path.utf8.first == Self.slash, "a path begins with a slash: \(path)")
        let (node, names) = node(at: path, path.utf8.dropFirst())
        precondition(node.routes[method] == nil, "\(method) \(path) has a handler")
        node.routes[method] = Route(path: path, handler: handler, names: names)
    }

    func takeNumber() -> Int {
        groups += 1
        return groups
    }

    /// Adds a group's filters, unless a group that is not around this one has filters for the prefix.
    func add(_ filters: Router.Filters, around prefix: String, inside outer: Int) {
        precondition(prefix.isEmpty || prefix.utf8.first == Self.slash, "a prefix begins with a slash: \(prefix)")
        let path = prefix.utf8.last == Self.slash ? prefix.utf8.dropLast() : prefix.utf8[...]
        let node = path.isEmpty ? self : node(at: prefix, path.dropFirst()).0
        if node.filters.all.isEmpty || node.filters.group == outer { node.filters = filters }
    }

    private func node(at path: String, _ parts: Substring.UTF8View) -> (RouteNode, [String]) {
        var (node, names, isTail) = (self, [String](), false)
        for part in parts.split(separator: Self.slash, omittingEmptySubsequences: false) {
            precondition(!isTail, "nothing follows all that is left: \(path)")
            var name = part
            guard name.popFirst() == UInt8(ascii: "{"), name.popLast() == UInt8(ascii: "}") else {
                precondition(!part.contains { "{}".utf8.contains($0) }, "a brace in a part of a path: \(path)")
                node = Self.next(&node.parts[Array(part)])
                continue
            }
            isTail = name.suffix(3).elementsEqual("...".utf8)
            names.append(String(Substring(isTail ? name.dropLast(3) : name)))
            node = isTail ? Self.next(&node.tail) : Self.next(&node.parameter)
        }
        return (node, names)
    }

    private static func next(_ node: inout RouteNode?) -> RouteNode {
        let next = node ?? RouteNode()
        node = next
        return next
    }

    // MARK: Finding

    /// - Parameter allowed: collects the methods of all matching paths.
    /// - Returns: the best route for the method, with its parameters' values.
    func find(
        _ method: Method, _ path: String, _ allowed: inout AllowedMethods
    ) -> (route: Route, parameters: Parameters)? {
        guard let parts = Self.parts(of: path), let (route, values) = find(method, parts[...], [], &allowed) else {
            return nil
        }
        var parameters = Parameters(refusal: .notFound)
        for (name, value) in zip(route.names, values) { parameters.append(name, value) }
        return (route, parameters)
    }

    /// Returns the filters of the group with the longest prefix of `path`.
    func filters(around path: String) -> [Router.Filter] {
        Self.parts(of: path).map { innermostFilters($0[...], depth: 0).filters } ?? filters.all
    }

    /// Splits a path into segments; `nil` if it matches nothing.
    private static func parts(of path: String) -> [Substring.UTF8View]? {
        guard path.utf8.first == slash else { return nil }
        let parts = path.utf8.dropFirst().split(separator: slash, omittingEmptySubsequences: false)
        return parts.contains(where: isRelative) ? nil : parts
    }

    /// True when a part is `.` or `..`, or contains one between escaped slashes, which a handler could take for a
    /// relative folder.
    private static func isRelative(_ part: Substring.UTF8View) -> Bool {
        guard part.first == UInt8(ascii: ".") || part.contains(UInt8(ascii: "%")) else { return false }
        return unescaped(part)?.split(separator: slash).contains {
            $0.elementsEqual(".".utf8) || $0.elementsEqual("..".utf8)
        } == true
    }

    /// Visits each node at most once, and decodes parts only there, so the routes bound the time.
    private func find(
        _ method: Method, _ parts: ArraySlice<Substring.UTF8View>, _ values: [String], isRest: Bool = false,
        _ allowed: inout AllowedMethods
    ) -> (Route, [String])? {
        guard let first = parts.first else {
            let route = routes[method] ?? (method == .head ? routes[.get] : nil)
            if route == nil { allowed.add(routes.keys, isRest: isRest) }
            return route.map { ($0, values) }
        }
        let (part, others) = (unescaped(first), parts.dropFirst())
        if let part, let node = self.parts[part],
            let found = node.find(method, others, values, &allowed)
        {
            return found
        }
        if let parameter, let part, !part.isEmpty, let value = String(validating: part, as: UTF8.self),
            let found = parameter.find(method, others, values + [value], &allowed)
        {
            return found
        }
        guard let tail else { return nil }
        let rest = parts.map { String(Substring($0)) }.joined(separator: "/")
        return tail.find(method, [], values + [rest], isRest: true, &allowed)
    }

    private func innermostFilters(
        _ parts: ArraySlice<Substring.UTF8View>, depth: Int
    ) -> (depth: Int, filters: [Router.Filter]) {
        var best = (depth: filters.all.isEmpty ? -1 : depth, filters: filters.all)
        guard let first = parts.first else { return best }
        func look(in node: RouteNode?, _ parts: ArraySlice<Substring.UTF8View>) {
            guard let found = node?.innermostFilters(parts, depth: depth + 1), found.depth > best.depth else { return }
            best = found
        }
        let part = unescaped(first)
        look(in: part.flatMap { self.parts[$0] }, parts.dropFirst())
        if part?.isEmpty == false { look(in: parameter, parts.dropFirst()) }
        look(in: tail, [])
        return best
    }
}
