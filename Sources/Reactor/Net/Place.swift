/// A part of an endpoint: an address, or a host name that is still to be looked up.
package enum Place: Hashable, Sendable {
    case address(SocketAddress)
    /// `localhost`, or a name below it: both loopback addresses.
    case localhost(port: UInt16)
    case host(String, port: UInt16)

    /// Parses every text that `SocketAddress` accepts, and also `example.com:80`.
    /// - Parameter takesNames: whether names are accepted other than `localhost`.
    package init(_ text: String, takesNames: Bool = true) throws(SocketAddress.ParseError) {
        func fail(_ reason: String) -> SocketAddress.ParseError {
            SocketAddress.ParseError(text: text, reason: reason)
        }
        // Bytes are compared throughout: a delimiter followed by a combining mark is not a separate `Character`.
        if let name = text.rest(after: "unix:") {
            self = .address(try Self.unix(name))
            return
        }
        if let scheme = text.firstRange(of: "://") {
            throw fail("write HOST:PORT, without '\(text[..<scheme.upperBound])' and without a path")
        }
        guard let colon = text.utf8.lastIndex(of: UInt8(ascii: ":")), text.utf8.last != UInt8(ascii: "]") else {
            throw fail("the port is missing; write HOST:PORT")
        }
        let digits = text[text.utf8.index(after: colon)...]
        guard let port = UInt16(decimal: digits) else {
            throw fail("the port '\(digits)' is not a number from 0 to 65535")
        }
        var name = text[..<colon]
        let isBracketed =
            name.begins(with: "[") && name.utf8.last == UInt8(ascii: "]") && name.utf8.count > 1
        if isBracketed { name = Substring(name.utf8.dropFirst().dropLast()) }
        if !isBracketed && name.utf8.contains(UInt8(ascii: ":")) {
            throw fail("write an IPv6 address in brackets, as [::1]:7000")
        }
        if !isBracketed && Self.isLocalhost(name) {
            self = .localhost(port: port)
        } else if let address = SocketAddress(host: String(name), port: port), isBracketed == address.isIPv6 {
            self = .address(address)
        } else if takesNames && !isBracketed && Self.isHostName(name) {
            self = .host(String(name), port: port)
        } else {
            let rest = takesNames ? "nor the name of a host" : "and names are not looked up"
            throw fail("'\(name)' is neither an IPv4 nor an IPv6 address, \(rest)")
        }
    }

    /// The addresses, as far as they are known without a lookup: IPv6 first.
    package var addresses: [SocketAddress] {
        switch self {
        case .address(let address): [address]
        case .localhost(let port): SocketAddress.loopbacks(port: port)
        case .host: []
        }
    }

    private static func unix(_ name: Substring) throws(SocketAddress.ParseError) -> SocketAddress {
        if let name = name.rest(after: "@") { return try SocketAddress(abstract: String(name)) }
        return try SocketAddress(unixPath: String(name))
    }

    /// Whether `name` is a host name: letters, digits, hyphens and underscores, in labels of at most 63 bytes with dots
    /// between them, 253 bytes in all. It may end with a dot. If the last label is a number, the text was meant as an
    /// IPv4 address and is not a name. See RFC 1123, 2.1.
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

    /// Whether `name` is `localhost` or a name below it, whatever its case, with or without a dot at its end. Such
    /// names are the loopback addresses, and are not looked up. See RFC 6761, 6.3.
    static func isLocalhost(_ name: Substring) -> Bool {
        let name = name.utf8.last == UInt8(ascii: ".") ? Substring(name.utf8.dropLast()) : name
        let ending = "localhost".utf8
        guard name.utf8.count >= ending.count, isHostName(name),
            zip(name.utf8.suffix(ending.count), ending).allSatisfy({ $0 | 0x20 == $1 })
        else { return false }
        let rest = name.utf8.dropLast(ending.count)
        return rest.isEmpty || rest.last == UInt8(ascii: ".")
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }
}
