import ReactorLibc
import Reactor

/// A client's proxies. An `http:` request goes to the proxy. For `https:` the proxy opens a tunnel, and TLS ends at the
/// server.
public struct Proxies: Hashable, Sendable {
    /// The proxy for `http:`, as `http://user:password@host:port`; `nil` for none.
    public var http: String?
    /// The proxy for `https:`, whose address begins with `http:` too; `nil` for none.
    public var https: String?
    /// The hosts without a proxy, separated by commas: `example.com` for this name and its subdomains, `10.0.0.0/8` for
    /// a network, a single `*` for all. A port limits the exception: `example.com:8080`, `[::1]:8080`.
    public var exceptions: String

    /// - Parameters:
    ///   - http: the proxy for `http:`.
    ///   - https: the proxy for `https:`, whose address begins with `http:` too; `nil` for none.
    ///   - exceptions: hosts without a proxy.
    public init(http: String? = nil, https: String? = nil, exceptions: String = "") {
        (self.http, self.https, self.exceptions) = (http, https, exceptions)
    }

    /// The environment's proxies, as for curl(1): `http_proxy`, `https_proxy`, `all_proxy` for both, and `no_proxy`;
    /// all but the first also in upper case. `HTTP_PROXY` is ignored, because a CGI program's client can set it.
    public static var environment: Proxies { Proxies { getenv($0).map { String(cString: $0) } } }

    package init(variables: (String) -> String?) {
        func first(of names: String...) -> String? { names.lazy.compactMap(variables).first { !$0.isEmpty } }
        let all = first(of: "all_proxy", "ALL_PROXY")
        self.init(
            http: first(of: "http_proxy") ?? all, https: first(of: "https_proxy", "HTTPS_PROXY") ?? all,
            exceptions: first(of: "no_proxy", "NO_PROXY") ?? "")
    }

    func proxy(for address: WebAddress) throws(FetchError) -> Proxy? {
        guard let text = address.isSecure ? https : http, !isExcepted(address.name, port: address.port)
        else { return nil }
        return try Proxy(text)
    }

    /// - Parameter host: a name in lower case, or an address without brackets.
    package func isExcepted(_ host: String, port: UInt16) -> Bool {
        if exceptions == "*" { return true }
        let host = host.hasSuffix(".") ? host.dropLast() : host[...]
        let bytes = Self.bytes(of: host)
        return exceptions.split { ", \t".contains($0) }.contains { exception in
            guard let exception = Self.withoutPort(exception, port) else { return false }
            if bytes.isEmpty {
                let name = exception.drop { $0 == "." }.lowercased()
                let suffix = name.hasSuffix(".") ? name.dropLast() : name[...]
                return host == suffix || host.hasSuffix("." + suffix) && !suffix.isEmpty
            }
            let parts = exception.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
            let network = Self.bytes(of: parts[0])
            let most = 8 * bytes.count
            guard network.count == bytes.count, let bits = parts.count == 1 ? most : Int(decimal: parts[1]),
                bits <= most
            else { return false }
            return bytes.indices.allSatisfy { index in
                let rest = min(max(bits - 8 * index, 0), 8)
                return (bytes[index] ^ network[index]) >> UInt8(8 - rest) == 0
            }
        }
    }

    /// Strips port and IPv6 brackets from an exception; `nil` if it names another port.
    private static func withoutPort(_ exception: Substring, _ port: UInt16) -> Substring? {
        if exception.hasPrefix("[") {
            guard let bracket = exception.firstIndex(of: "]") else { return nil }
            let rest = exception[bracket...].dropFirst()
            let isForPort = rest.isEmpty || rest.hasPrefix(":") && UInt16(decimal: rest.dropFirst()) == port
            return isForPort ? exception[..<bracket].dropFirst() : nil
        }
        let parts = exception.split(separator: ":", omittingEmptySubsequences: false)
        // Several colons without brackets are an IPv6 address.
        if parts.count != 2 { return exception }
        return UInt16(decimal: parts[1]) == port ? parts[0] : nil
    }

    /// Parses an IP address; empty for a name.
    private static func bytes(of host: Substring) -> [UInt8] {
        for (family, count) in [(AF_INET, 4), (AF_INET6, 16)] {
            var bytes = [UInt8](repeating: 0, count: count)
            if inet_pton(family, String(host), &bytes) == 1 { return bytes }
        }
        return []
    }
}

struct Proxy {
    let address: WebAddress
    /// The field `Proxy-Authorization`: RFC 7617.
    let authorization: String?

    init(_ text: String) throws(FetchError) {
        var rest = text[...]
        if let scheme = text.firstRange(of: "://") { rest = text[scheme.upperBound...] }
        let at = rest.lastIndex(of: "@")
        let host = at.map { rest[rest.index(after: $0)...] } ?? rest
        // The address may contain a password, so the error has only the host.
        let refusal = FetchError.badProxy(String(host))
        guard text.hasPrefix("http://") || rest.startIndex == text.startIndex else { throw refusal }
        do { address = try WebAddress("http://\(host)") } catch { throw refusal }
        guard let at else {
            authorization = nil
            return
        }
        guard let account = unescaped(rest[..<at].utf8) else { throw refusal }
        authorization = "Basic " + base64(account)
    }
}
