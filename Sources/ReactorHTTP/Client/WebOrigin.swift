import Promises
import Reactor
import ReactorIO

/// An address's server: the parts before the path. The addresses of a server share it, so it is parsed and formatted
/// once.
final class WebOrigin: Equatable, Sendable {
    let isSecure: Bool
    /// The host, with an IPv6 address's brackets and zone.
    let host: String
    let port: UInt16
    /// The value of `Host`, with the port unless it is the scheme's default.
    let authority: String
    let key: PoolKey
    /// The text before the path, from which this was parsed.
    private let written: [UInt8]

    struct Flaw: Error { let reason: String }

    /// - Parameters:
    ///   - text: an address without fragment.
    ///   - schemes: the accepted schemes; the second is secure.
    init(_ text: Bytes, _ schemes: (StaticString, StaticString)) throws(Flaw) {
        let colon = text.position(of: UInt8(ascii: ":")) ?? 0
        isSecure = text.slice(0..<colon).isEqual(ignoringCase: schemes.1)
        let rest = text.slice(min(colon + 1, text.count)..<text.count)
        guard isSecure || text.slice(0..<colon).isEqual(ignoringCase: schemes.0),
            rest.starts(with: [UInt8(ascii: "/"), UInt8(ascii: "/")])
        else { throw Flaw(reason: "it begins with neither \(schemes.0):// nor \(schemes.1)://") }
        let end = rest.dropFirst(2).firstIndex(where: Self.isBehind) ?? rest.count
        let authority = rest.slice(2..<end)
        // RFC 9110, section 4.2.4.
        if authority.contains(UInt8(ascii: "@")) {
            throw Flaw(reason: "it has an account, which belongs into the field Authorization")
        }
        let isBracketed = authority.first == UInt8(ascii: "[")
        let bracket = isBracketed ? authority.position(of: UInt8(ascii: "]")) ?? authority.count : 0
        let hostEnd = authority.position(of: UInt8(ascii: ":"), from: bracket) ?? authority.count
        if hostEnd == 0 { throw Flaw(reason: "it has no host") }
        // False without the closing bracket, or with more text after it.
        let isComplete = isBracketed && hostEnd == bracket + 1
        var name = authority.slice(isComplete ? 1..<bracket : 0..<hostEnd).text
        var zone = ""
        if isComplete, let percent = name.firstIndex(of: "%") {
            let rest = name[percent...].dropFirst()
            // `%25zone` as in RFC 6874, or `%zone` as in `connect`.
            zone = "%" + (rest.hasPrefix("25") && rest.count > 2 ? rest.dropFirst(2) : rest)
            name = String(name[..<percent])
        }
        guard ParsedEndpoint(host: (name + zone)[...], isBracketed: isComplete, port: 0) != nil else {
            throw Flaw(reason: ParsedEndpoint.reason((name + zone)[...]))
        }
        host = isComplete ? "[\(name.lowercased())\(zone)]" : name.lowercased()
        let digits = authority.dropFirst(hostEnd + 1)
        let ownPort = isSecure ? 443 : 80
        var number = digits.isEmpty ? ownPort : 0
        for digit in digits {
            number = number * 10 + Int(digit & 15)
            guard isDigit(digit), number < 65_536 else {
                throw Flaw(reason: "the port is not a number from 0 to 65535")
            }
        }
        port = UInt16(number)
        let shown = Self.withoutZone(host)
        self.authority = number == ownPort ? shown : "\(shown):\(number)"
        key = .name("\(isSecure ? "https" : "http")://\(host):\(number)")
        written = Array(text.slice(0..<colon + 1 + end))
    }

    /// The number of bytes before the path.
    var length: Int { written.count }

    /// True when `text`, an address without fragment, begins in the same way up to its path.
    func isBeginning(of text: Bytes) -> Bool {
        text.begin(with: written) && (text.count == length || Self.isBehind(text[length]))
    }

    /// True for the first byte of a path or query.
    private static func isBehind(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "/") || byte == UInt8(ascii: "?") }

    var scheme: String { isSecure ? "https" : "http" }

    /// The host without a zone, which no peer may see: RFC 6874, section 4.
    var hostForPeers: String { Self.withoutZone(host) }

    private static func withoutZone(_ host: String) -> String {
        guard let zone = host.utf8.firstIndex(of: UInt8(ascii: "%")) else { return host }
        return host[..<zone] + "]"
    }

    static func == (one: WebOrigin, other: WebOrigin) -> Bool { one === other || one.key == other.key }
}
