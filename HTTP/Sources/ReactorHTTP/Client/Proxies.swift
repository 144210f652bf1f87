import Glibc
import Promises

/// The proxies of a client. It sends requests with `http:` to one, and has it open a tunnel for those with `https:`, whose TLS
/// ends at the server.
public struct Proxies: Hashable, Sendable {
    /// The proxy for `http:`, as `http://user:password@host:port`; `nil` for none.
    public var http: String?
    /// The proxy for `https:`.
    public var https: String?
    /// Which hosts are reached without a proxy, with commas between: `example.com` is this name and those that end with
    /// `.example.com`, `10.0.0.0/8` the addresses of a network, and a single `*` every host.
    public var exceptions: String

    /// - Parameters:
    ///   - http: the proxy for `http:`.
    ///   - https: the proxy for `https:`.
    ///   - exceptions: which hosts are reached without a proxy.
    public init(http: String? = nil, https: String? = nil, exceptions: String = "") {
        (self.http, self.https, self.exceptions) = (http, https, exceptions)
    }

    /// Those that the environment names, as for curl(1): `http_proxy`, `https_proxy`, `all_proxy` for both, and `no_proxy`; all
    /// but the first also in upper case. A client of a CGI program can set `HTTP_PROXY`, so it does not count.
    public static var environment: Proxies { Proxies { getenv($0).map { String(cString: $0) } } }

    package init(variables: (String) -> String?) {
        func first(of names: String...) -> String? { names.lazy.compactMap(variables).first { !$0.isEmpty } }
        let all = first(of: "all_proxy", "ALL_PROXY")
        self.init(
            http: first(of: "http_proxy") ?? all, https: first(of: "https_proxy", "HTTPS_PROXY") ?? all,
            exceptions: first(of: "no_proxy", "NO_PROXY") ?? "")
    }

    /// The proxy for `address`; `nil` for none.
    func proxy(for address: WebAddress) throws(FetchError) -> Proxy? {
        guard let text = address.isSecure ? https : http, !isExcepted(address.name) else { return nil }
        return try Proxy(text)
    }

    /// - Parameter host: a name in lower case, or an address without brackets.
    package func isExcepted(_ host: String) -> Bool {
        if exceptions == "*" { return true }
        let host = host.hasSuffix(".") ? host.dropLast() : host[...]
        let bytes = Self.bytes(of: host)
        return exceptions.split { ", \t".contains($0) }.contains { exception in
            if bytes.isEmpty {
                let name = exception.drop { $0 == "." }.lowercased()
                let suffix = name.hasSuffix(".") ? name.dropLast() : name[...]
                return host == suffix || host.hasSuffix("." + suffix) && !suffix.isEmpty
            }
            let parts = exception.split(separator: "/", maxSplits: 1)
            let network = Self.bytes(of: parts.first?.drop { $0 == "[" }.prefix { $0 != "]" } ?? "")
            let most = 8 * bytes.count
            guard network.count == bytes.count, let bits = parts.count == 1 ? most : Int(parts[1]), 0...most ~= bits
            else { return false }
            return bytes.indices.allSatisfy { index in
                let rest = min(max(bits - 8 * index, 0), 8)
                return (bytes[index] ^ network[index]) >> UInt8(8 - rest) == 0
            }
        }
    }

    /// The bytes of an IP address; none of a name.
    private static func bytes(of host: Substring) -> [UInt8] {
        for (family, count) in [(AF_INET, 4), (AF_INET6, 16)] {
            var bytes = [UInt8](repeating: 0, count: count)
            if inet_pton(family, String(host), &bytes) == 1 { return bytes }
        }
        return []
    }
}

/// A proxy.
struct Proxy {
    let address: WebAddress
    /// The field `Proxy-Authorization`: RFC 7617.
    let authorization: String?

    init(_ text: String) throws(FetchError) {
        var rest = text[...]
        if let scheme = text.firstRange(of: "://") { rest = text[scheme.upperBound...] }
        let at = rest.lastIndex(of: "@")
        let host = at.map { rest[rest.index(after: $0)...] } ?? rest
        // Its account is for no log.
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

extension HTTPClient.Options {
    /// Where to connect for the server that `key` names: to it, or to the proxy that opens a tunnel.
    func route(_ key: PoolKey) throws -> PoolKey {
        let address = try WebAddress("\(key)")
        guard address.isSecure, let proxy = try proxies.proxy(for: address) else { return address.endpoint }
        return proxy.address.endpoint
    }

    /// Makes a new connection secure, if its server wants that.
    func prepare(_ connection: Connection, _ key: PoolKey) throws -> Promise<Void> {
        let address = try WebAddress("\(key)")
        guard address.isSecure else { return .value }
        guard let startTLS else { throw FetchError.noTLS(address.authority) }
        let proxy = try proxies.proxy(for: address)
        let opened = proxy.map { openTunnel(to: address, by: $0, connection) } ?? .value
        return opened.then { startTLS(connection, address.name) }.asVoid()
    }

    /// RFC 9110, section 9.3.6.
    private func openTunnel(to address: WebAddress, by proxy: Proxy, _ connection: Connection) -> Promise<Void> {
        let target = "\(address.host):\(address.port)"
        let account = proxy.authorization.map { "Proxy-Authorization: \($0)\r\n" } ?? ""
        let sent = connection.write("CONNECT \(target) HTTP/1.1\r\nHost: \(target)\r\n\(account)\r\n")
        // As the response to HEAD, one that opens a tunnel has no body, whatever its fields say.
        let parser = ResponseParser(maxHead: maxHead, maxFields: maxFields, isToHead: true)
        return sent.then { connection.readFrame(parser) }.done { head in
            guard let head else { throw FetchError.endedEarly }
            guard head.status.isSuccess else { throw FetchError.refusedByProxy(head.status) }
        }
    }
}
