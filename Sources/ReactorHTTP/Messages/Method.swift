/// A request's method, case-sensitive: RFC 9110, section 9.
public struct Method: Hashable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
    /// A token, such as `GET`.
    public let name: String

    /// - Parameter name: a token. `fetch` refuses other texts.
    public init(_ name: String) { self.name = name }

    /// The method with this name.
    public init(stringLiteral name: String) { self.name = name }

    /// Reads.
    public static var get: Method { "GET" }
    /// Reads without the body.
    public static var head: Method { "HEAD" }
    /// Processes the body.
    public static var post: Method { "POST" }
    /// Replaces the resource with the body.
    public static var put: Method { "PUT" }
    /// Changes the resource as the body says.
    public static var patch: Method { "PATCH" }
    /// Removes.
    public static var delete: Method { "DELETE" }
    /// Asks for the possible methods.
    public static var options: Method { "OPTIONS" }

    /// True if a request may be repeated without harm: RFC 9110, section 9.2.2.
    public var isIdempotent: Bool {
        switch name {
        case "GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE": true
        default: false
        }
    }

    init(_ bytes: Bytes) { name = bytes.isEqual(to: "GET") ? "GET" : bytes.text }

    /// The name.
    public var description: String { name }
}
