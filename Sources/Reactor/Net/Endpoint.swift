/// What the text of an address names: an address, or a host whose addresses are still to be looked up.
package enum Endpoint: Hashable, Sendable {
    case address(SocketAddress)
    case host(String, port: UInt16)

    /// Parses what `SocketAddress` takes, and `example.com:80`.
    package init(_ text: String) throws(SocketAddress.ParseError) { try self.init(text, takesNames: true) }

    init(_ text: String, takesNames: Bool) throws(SocketAddress.ParseError) {
        func fail(_ reason: String) -> SocketAddress.ParseError {
            SocketAddress.ParseError(text: text, reason: reason)
        }
        if text.hasPrefix("unix:") {
            self = .address(try Self.unix(text.dropFirst(5)))
            return
        }
        guard let colon = text.lastIndex(of: ":"), !text.hasSuffix("]") else {
            throw fail("the port is missing; write HOST:PORT")
        }
        let digits = text[text.index(after: colon)...]
        guard let port = UInt16(digits), digits.allSatisfy(\.isNumber) else {
            throw fail("the port '\(digits)' is not a number from 0 to 65535")
        }
        var name = text[..<colon]
        let isBracketed = name.hasPrefix("[") && name.hasSuffix("]")
        if isBracketed { name = name.dropFirst().dropLast() }
        if !isBracketed && name.contains(":") { throw fail("write an IPv6 address in brackets, as [::1]:7000") }
        if let address = SocketAddress(host: String(name), port: port), isBracketed == address.isIPv6 {
            self = .address(address)
        } else if takesNames && !isBracketed && Self.isHostName(name) {
            self = .host(String(name), port: port)
        } else {
            let rest = takesNames ? "nor the name of a host" : "and names are not looked up"
            throw fail("'\(name)' is neither an IPv4 nor an IPv6 address, \(rest)")
        }
    }

    private static func unix(_ name: Substring) throws(SocketAddress.ParseError) -> SocketAddress {
        name.first == "@"
            ? try SocketAddress(abstract: String(name.dropFirst())) : try SocketAddress(unixPath: String(name))
    }

    /// Letters, digits, hyphens and underscores, in parts of at most 63 with dots between them, 253 in all; a dot may end it.
    /// One whose last part is a number is no name: it was meant for an IPv4 address. See RFC 1123, 2.1.
    private static func isHostName(_ name: Substring) -> Bool {
        var parts = name.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        if parts.count > 1, parts.last?.isEmpty == true { parts.removeLast() }
        guard name.utf8.count <= 253, let last = parts.last, !last.allSatisfy(isDigit) else { return false }
        return parts.allSatisfy { part in
            (1...63).contains(part.count) && part.first != UInt8(ascii: "-") && part.last != UInt8(ascii: "-")
                && part.allSatisfy {
                    isDigit($0) || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0 | 0x20)
                        || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "_")
                }
        }
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }
}
