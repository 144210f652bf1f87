/// A handler, and the names of its path parameters.
struct Route {
    let handler: (Request) throws -> Answer
    let names: [String]
}

/// The routes below a path prefix.
final class RouteNode {
    /// Children by the next path segment, without escapes. Bytes, since Unicode-equivalent texts are equal as a
    /// `String`.
    private var parts: [[UInt8]: RouteNode] = [:]
    private var parameter: RouteNode?
    private var tail: RouteNode?
    /// The routes that end here, by method.
    private var routes: [Method: Route] = [:]

    private static var slash: UInt8 { UInt8(ascii: "/") }

    func add(_ method: Method, _ path: String, _ handler: @escaping (Request) throws -> Answer) {
        precondition(path.utf8.first == Self.slash, "a path begins with a slash: \(path)")
        var (node, names, isTail) = (self, [String](), false)
        for part in path.utf8.dropFirst().split(separator: Self.slash, omittingEmptySubsequences: false) {
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
        precondition(node.routes[method] == nil, "\(method) \(path) has a handler")
        node.routes[method] = Route(handler: handler, names: names)
    }

    private static func next(_ node: inout RouteNode?) -> RouteNode {
        let next = node ?? RouteNode()
        node = next
        return next
    }

    /// - Parameter allowed: collects the methods of all paths that match.
    /// - Returns: the best route for the method, with the values of its parameters.
    func find(_ method: Method, _ path: String, _ allowed: inout Set<String>) -> (Route, [String])? {
        guard path.utf8.first == Self.slash else { return nil }
        let parts = path.utf8.dropFirst().split(separator: Self.slash, omittingEmptySubsequences: false)
        if parts.contains(where: Self.isRelative) { return nil }
        return find(method, parts[...], [], &allowed)
    }

    /// Whether a part is `.` or `..`, which a handler could take for a relative folder.
    private static func isRelative(_ part: Substring.UTF8View) -> Bool {
        guard let first = part.first, first == UInt8(ascii: ".") || first == UInt8(ascii: "%") else { return false }
        return unescaped(part).map { $0.elementsEqual(".".utf8) || $0.elementsEqual("..".utf8) } == true
    }

    /// Visits each node once at most, so the time is bounded by the number of routes: a part is decoded only there.
    private func find(
        _ method: Method, _ parts: ArraySlice<Substring.UTF8View>, _ values: [String], _ allowed: inout Set<String>
    ) -> (Route, [String])? {
        guard let first = parts.first else {
            allowed.formUnion(routes.keys.map(\.name))
            let route = routes[method] ?? (method == .head ? routes[.get] : nil)
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
        return tail.find(method, [], values + [rest], &allowed)
    }
}
