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
        var copy = text
        guard let parsed = copy.withUTF8({ Self(Bytes($0)) }) else { throw .badAddress(text) }
        self = parsed
    }

    private init?(_ text: Bytes) {
        // The fragment is for the program.
        let text = text.slice(0..<(text.position(of: UInt8(ascii: "#")) ?? text.count))
        guard text.allSatisfy(isVisible), let colon = text.position(of: UInt8(ascii: ":")) else { return nil }
        isSecure = text.slice(0..<colon).isEqual(ignoringCase: "https")
        if !isSecure && !text.slice(0..<colon).isEqual(ignoringCase: "http") { return nil }
        let rest = text.slice(colon + 1..<text.count)
        guard rest.starts(with: [UInt8(ascii: "/"), UInt8(ascii: "/")]) else { return nil }
        let end = rest.dropFirst(2).firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") } ?? rest.count
        // Accounts in addresses are refused: RFC 9110, section 4.2.4.
        let authority = rest.slice(2..<end)
        guard HeadFields.isHost(authority) else { return nil }
        let bracket = authority.position(of: UInt8(ascii: "]"))
        let hostEnd = authority.position(of: UInt8(ascii: ":"), from: bracket ?? 0) ?? authority.count
        host = authority.slice(0..<hostEnd).text.lowercased()
        let digits = authority.slice(hostEnd..<authority.count).text.dropFirst()
        guard !host.isEmpty, let port = digits.isEmpty ? isSecure ? 443 : 80 : UInt16(digits) else { return nil }
        self.port = port
        let behind = rest.slice(end..<rest.count).text
        target = behind.hasPrefix("/") ? behind : "/" + behind
    }

    /// The address that a `Location` field of a response from here names: RFC 3986, section 5.2. Bytes that are
    /// not those of a URI are escaped.
    func resolve(_ location: String) throws(FetchError) -> WebAddress {
        var reference = ""
        for byte in location.utf8.prefix(while: { $0 != UInt8(ascii: "#") }) {
            let digits = String(UInt(byte) + 0x100, radix: 16, uppercase: true)
            reference += isVisible(byte) ? String(Unicode.Scalar(byte)) : "%" + digits.dropFirst()
        }
        let scheme = reference.prefix { !":/?".contains($0) }
        if scheme.first?.isLetter == true, reference[scheme.endIndex...].hasPrefix(":") {
            return try WebAddress(reference)
        }
        if reference.hasPrefix("//") { return try WebAddress("\(self.scheme):\(reference)") }
        if reference.isEmpty { return self }
        let own = target.prefix { $0 != "?" }
        let path = reference.prefix { $0 != "?" }
        var resolved = self
        if path.isEmpty {
            resolved.target = own + reference
        } else {
            let base = path.hasPrefix("/") ? "" : own[...own.lastIndex(of: "/")!]
            resolved.target = Self.withoutDots(base + path) + reference[path.endIndex...]
        }
        return resolved
    }

    /// RFC 3986, section 5.2.4.
    private static func withoutDots(_ path: Substring) -> String {
        var kept: [Substring] = []
        let segments = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
        for segment in segments {
            if segment == ".." { _ = kept.popLast() } else if segment != "." { kept.append(segment) }
        }
        // The end of such a path is that of a folder.
        if segments.last == ".." || segments.last == "." { kept.append("") }
        return "/" + kept.joined(separator: "/")
    }

    private var scheme: String { isSecure ? "https" : "http" }

    /// The field `Host`: the port only if it is not that of the scheme.
    var authority: String { port == (isSecure ? 443 : 80) ? host : "\(host):\(port)" }

    /// All of it, the absolute form of a request's target.
    var text: String { "\(scheme)://\(authority)\(target)" }

    /// The key of its connections.
    var key: PoolKey { .name("\(scheme)://\(host):\(port)") }

    /// Where to connect.
    var endpoint: PoolKey { .name("\(host):\(port)") }

    /// The host without the brackets of an IPv6 address, which TLS verifies.
    var name: String { String(host.hasPrefix("[") ? host.dropFirst().dropLast() : host[...]) }

    func hasOrigin(of other: WebAddress) -> Bool {
        (isSecure, host, port) == (other.isSecure, other.host, other.port)
    }
}
