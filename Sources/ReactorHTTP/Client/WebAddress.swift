import Promises
import Reactor

/// The parts of `http://host:port/path?query` that a request uses.
struct WebAddress: Equatable {
    var isSecure: Bool
    /// The host, with the brackets and the zone of an IPv6 address.
    var host: String
    var port: UInt16
    /// The path and query; begins with a slash.
    var target: String

    /// - Parameter schemes: the accepted schemes; the second one is secure.
    /// - Throws: `FetchError.badAddress`.
    init(_ text: String, schemes: (StaticString, StaticString) = ("http", "https")) throws(FetchError) {
        var copy = text
        let parsed = copy.withUTF8 { text in Result { () throws(Flaw) in try Self(Bytes(text), schemes) } }
        switch parsed {
        case .success(let address): self = address
        case .failure(let flaw): throw .badAddress(Self.withoutAccount(text), reason: flaw.reason)
        }
    }

    /// Why the text is not an address.
    private struct Flaw: Error { let reason: String }

    private init(_ text: Bytes, _ schemes: (StaticString, StaticString)) throws(Flaw) {
        // The fragment is not sent.
        let text = text.slice(0..<(text.position(of: UInt8(ascii: "#")) ?? text.count))
        let colon = text.position(of: UInt8(ascii: ":")) ?? 0
        isSecure = text.slice(0..<colon).isEqual(ignoringCase: schemes.1)
        let rest = text.slice(min(colon + 1, text.count)..<text.count)
        guard isSecure || text.slice(0..<colon).isEqual(ignoringCase: schemes.0),
            rest.starts(with: [UInt8(ascii: "/"), UInt8(ascii: "/")])
        else { throw Flaw(reason: "it begins with neither \(schemes.0):// nor \(schemes.1)://") }
        let end = rest.dropFirst(2).firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") } ?? rest.count
        if let byte = rest.slice(end..<rest.count).first(where: { !isVisible($0) }) {
            throw Flaw(reason: "the byte \(Self.escaped(byte)) must be escaped")
        }
        let authority = rest.slice(2..<end)
        // RFC 9110, section 4.2.4.
        if authority.contains(UInt8(ascii: "@")) {
            throw Flaw(reason: "it has an account, which belongs into the field Authorization")
        }
        let isBracketed = authority.first == UInt8(ascii: "[")
        let bracket = isBracketed ? authority.position(of: UInt8(ascii: "]")) ?? authority.count : 0
        let hostEnd = authority.position(of: UInt8(ascii: ":"), from: bracket) ?? authority.count
        if hostEnd == 0 { throw Flaw(reason: "it has no host") }
        // Without the closing bracket, or with more behind it, no address.
        let isComplete = isBracketed && hostEnd == bracket + 1
        var name = authority.slice(isComplete ? 1..<bracket : 0..<hostEnd).text
        var zone = ""
        if isComplete, let percent = name.firstIndex(of: "%") {
            let rest = name[percent...].dropFirst()
            // RFC 6874; and the form of `connect`.
            zone = "%" + (rest.hasPrefix("25") && rest.count > 2 ? rest.dropFirst(2) : rest)
            name = String(name[..<percent])
        }
        guard Place(host: (name + zone)[...], isBracketed: isComplete, port: 0) != nil else {
            throw Flaw(reason: Place.reason((name + zone)[...]))
        }
        host = isComplete ? "[\(name.lowercased())\(zone)]" : name.lowercased()
        let digits = authority.dropFirst(hostEnd + 1)
        var number = digits.isEmpty ? isSecure ? 443 : 80 : 0
        for digit in digits {
            number = number * 10 + Int(digit & 15)
            guard isDigit(digit), number < 65_536 else {
                throw Flaw(reason: "the port is not a number from 0 to 65535")
            }
        }
        port = UInt16(number)
        let behind = rest.slice(end..<rest.count).text
        target = behind.hasPrefix("/") ? behind : "/" + behind
    }

    /// `text` for an error message, which may be logged: without user and password.
    private static func withoutAccount(_ text: String) -> String {
        let bytes = text.utf8
        let scheme = text.firstRange(of: "://")?.upperBound
        let start = scheme ?? text.startIndex
        let end = scheme.flatMap { bytes[$0...].firstIndex { "/?#".utf8.contains($0) } } ?? text.endIndex
        var at = bytes[start..<end].lastIndex(of: UInt8(ascii: "@"))
        // A password may contain such a byte, although it must not: then what follows the colon is no port.
        if at == nil, let colon = bytes[start..<end].lastIndex(of: UInt8(ascii: ":")),
            !bytes[colon..<end].dropFirst().allSatisfy(isDigit)
        {
            at = bytes.lastIndex(of: UInt8(ascii: "@"))
        }
        return at.map { "\(text[..<start])***\(text[$0...])" } ?? text
    }

    /// RFC 3986, section 2.1.
    private static func escaped(_ byte: UInt8) -> String {
        "%" + String(UInt(byte) + 0x100, radix: 16, uppercase: true).dropFirst()
    }

    /// Resolves the `Location` field of a response from here: RFC 3986, section 5.2. Bytes that are not allowed in a
    /// URI are escaped.
    func resolve(_ location: some Sequence<UInt8>) throws(FetchError) -> WebAddress {
        var reference = ""
        for byte in location {
            reference += isVisible(byte) ? String(Unicode.Scalar(byte)) : Self.escaped(byte)
        }
        let scheme = reference.prefix { !":/?#".contains($0) }
        if scheme.first?.isLetter == true, reference[scheme.endIndex...].hasPrefix(":") {
            return try WebAddress(reference)
        }
        if reference.hasPrefix("//") { return try WebAddress("\(self.scheme):\(reference)") }
        // The fragment is not sent.
        if let fragment = reference.firstIndex(of: "#") { reference.removeSubrange(fragment...) }
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
        // Such a path ends in a folder.
        if segments.last == ".." || segments.last == "." { kept.append("") }
        return "/" + kept.joined(separator: "/")
    }

    private var scheme: String { isSecure ? "https" : "http" }

    /// The value of `Host`: with the port only if it is not the scheme's default.
    var authority: String { port == (isSecure ? 443 : 80) ? hostForPeers : "\(hostForPeers):\(port)" }

    /// The absolute form of a request's target.
    var text: String { "\(scheme)://\(authority)\(target)" }

    /// The pool key of its connections.
    var key: PoolKey { .name("\(scheme)://\(host):\(port)") }

    /// The address to connect to.
    var endpoint: PoolKey { .name("\(host):\(port)") }

    /// The host without a zone, which no peer is told: RFC 6874, section 4.
    var hostForPeers: String {
        guard let zone = host.utf8.firstIndex(of: UInt8(ascii: "%")) else { return host }
        return host[..<zone] + "]"
    }

    /// The host without the brackets of an IPv6 address, for TLS to verify.
    var name: String { String(host.hasPrefix("[") ? hostForPeers.dropFirst().dropLast() : host[...]) }

    func hasOrigin(of other: WebAddress) -> Bool {
        (isSecure, host, port) == (other.isSecure, other.host, other.port)
    }
}
