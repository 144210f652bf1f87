import Promises

/// The parts of `http://host:port/path?query` that a request needs.
struct WebAddress: Equatable {
    var isSecure: Bool
    /// With the brackets of an IPv6 address.
    var host: String
    var port: UInt16
    /// With its query; begins with a slash.
    var target: String

    /// - Throws: `FetchError.badAddress`.
    init(_ text: String) throws(FetchError) {
        let bytes = Array(text.utf8)
        guard bytes.allSatisfy({ 0x21...0x7E ~= $0 }), let colon = text.firstRange(of: "://") else {
            throw .badAddress(text)
        }
        switch text[..<colon.lowerBound].lowercased() {
        case "http": isSecure = false
        case "https": isSecure = true
        default: throw .badAddress(text)
        }
        // The fragment is for the program.
        let rest = text[colon.upperBound...].prefix { $0 != "#" }
        let authority = rest.prefix { $0 != "/" && $0 != "?" }
        let behind = rest[authority.endIndex...]
        target = behind.hasPrefix("/") ? String(behind) : "/" + behind
        guard let (host, port) = Self.split(authority) else { throw .badAddress(text) }
        self.host = host.lowercased()
        self.port = port ?? (isSecure ? 443 : 80)
    }

    /// Accounts in addresses are refused: RFC 9110, section 4.2.4.
    private static func split(_ authority: Substring) -> (host: String, port: UInt16?)? {
        guard !authority.isEmpty, Array(authority.utf8).withUnsafeBytes({ HeadFields.isHost($0) }) else { return nil }
        let end = authority.hasPrefix("[") ? authority.lastIndex(of: "]").map(authority.index(after:)) : nil
        let host = authority[..<(end ?? authority.firstIndex(of: ":") ?? authority.endIndex)]
        let port = authority[host.endIndex...].dropFirst()
        if host.isEmpty { return nil }
        if port.isEmpty { return (String(host), nil) }
        return UInt16(port).map { (String(host), $0) }
    }

    /// The address that a `Location` field of a response from here names: RFC 3986, section 5.2, without segments of dots.
    func resolve(_ location: String) throws(FetchError) -> WebAddress {
        if location.hasPrefix("//") { return try WebAddress("\(isSecure ? "https" : "http"):\(location)") }
        if location.contains("://"), !location.hasPrefix("/") { return try WebAddress(location) }
        let path = target.prefix { $0 != "?" }
        let base =
            switch location.first {
            case "/": ""
            case "?": String(path)
            default: String(path[...(path.lastIndex(of: "/") ?? path.startIndex)])
            }
        return try WebAddress("\(isSecure ? "https" : "http")://\(host):\(port)\(base)\(location)")
    }

    /// The field `Host`: the port only if it is not that of the scheme.
    var authority: String { port == (isSecure ? 443 : 80) ? host : "\(host):\(port)" }

    /// The key of the connections. That of `localhost` is a list of one address, since its name would be that of 127.0.0.1: the
    /// certificate of a server has one of the two.
    var key: PoolKey { host == "localhost" ? .addresses([.loopback(port: port)]) : .name("\(host):\(port)") }

    /// The name that TLS verifies for a key, without the brackets of an IPv6 address.
    static func hostName(of key: PoolKey) -> String {
        if case .addresses = key { return "localhost" }
        let text = "\(key)"
        let host = text.lastIndex(of: ":").map { text[..<$0] } ?? text[...]
        return String(host.hasPrefix("[") ? host.dropFirst().dropLast() : host)
    }

    func hasOrigin(of other: WebAddress) -> Bool {
        (isSecure, host, port) == (other.isSecure, other.host, other.port)
    }
}
