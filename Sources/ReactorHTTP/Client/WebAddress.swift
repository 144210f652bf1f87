import Promises
import ReactorIO

/// The parts of `http://host:port/path?query` that a request needs.
struct WebAddress: Equatable {
    let origin: WebOrigin
    /// The path and query, with a leading slash.
    var target: String

    /// - Parameters:
    ///   - schemes: the accepted schemes; the second is secure.
    ///   - known: an origin with one of these schemes, reused without parsing if the address begins with it.
    /// - Throws: `FetchError.badAddress`.
    init(
        _ text: String, schemes: (StaticString, StaticString) = ("http", "https"), like known: WebOrigin? = nil
    ) throws(FetchError) {
        var copy = text
        let parsed = copy.withUTF8 { text in
            Result { () throws(WebOrigin.Flaw) in try Self(Bytes(text), schemes, known) }
        }
        switch parsed {
        case .success(let address): self = address
        case .failure(let flaw): throw .badAddress(Self.withoutAccount(text), reason: flaw.reason)
        }
    }

    private init(
        _ text: Bytes, _ schemes: (StaticString, StaticString), _ known: WebOrigin?
    ) throws(WebOrigin.Flaw) {
        // The fragment is not sent.
        let text = text.slice(0..<(text.position(of: UInt8(ascii: "#")) ?? text.count))
        if let known, known.isBeginning(of: text) {
            origin = known
        } else {
            origin = try WebOrigin(text, schemes)
        }
        let behind = text.slice(origin.length..<text.count)
        if let byte = behind.first(where: { !isVisible($0) }) {
            throw WebOrigin.Flaw(reason: "the byte \(Self.escaped(byte)) must be escaped")
        }
        target = behind.first == UInt8(ascii: "/") ? behind.text : "/" + behind.text
    }

    /// Hides user and password for error messages, which may be logged.
    private static func withoutAccount(_ text: String) -> String {
        let bytes = text.utf8
        let scheme = text.firstRange(of: "://")?.upperBound
        let start = scheme ?? text.startIndex
        let end = scheme.flatMap { bytes[$0...].firstIndex { "/?#".utf8.contains($0) } } ?? text.endIndex
        var at = bytes[start..<end].lastIndex(of: UInt8(ascii: "@"))
        // A password may wrongly contain `/`, `?` or `#`. Then the text after the colon is no port.
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

    /// Resolves a response's `Location` field against this address: RFC 3986, section 5.2. Escapes bytes that a URI
    /// forbids.
    func resolve(_ location: some Sequence<UInt8>) throws(FetchError) -> WebAddress {
        var reference = ""
        for byte in location {
            reference += isVisible(byte) ? String(Unicode.Scalar(byte)) : Self.escaped(byte)
        }
        let scheme = reference.prefix { !":/?#".contains($0) }
        if scheme.first?.isLetter == true, reference[scheme.endIndex...].hasPrefix(":") {
            return try WebAddress(reference)
        }
        if reference.hasPrefix("//") { return try WebAddress("\(origin.scheme):\(reference)") }
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
        // A final dot segment names a folder.
        if segments.last == ".." || segments.last == "." { kept.append("") }
        return "/" + kept.joined(separator: "/")
    }

    var isSecure: Bool { origin.isSecure }
    var port: UInt16 { origin.port }
    var authority: String { origin.authority }
    var hostForPeers: String { origin.hostForPeers }

    /// The absolute form of a target.
    var text: String { "\(origin.scheme)://\(authority)\(target)" }

    var endpoint: PoolKey { .name("\(origin.host):\(port)") }

    /// The host without IPv6 brackets, for TLS to verify.
    var name: String {
        let host = origin.host
        return String(host.hasPrefix("[") ? hostForPeers.dropFirst().dropLast() : host[...])
    }
}
