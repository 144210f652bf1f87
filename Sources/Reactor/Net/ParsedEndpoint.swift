/// A part of an endpoint: an address, or a host name to look up.
package enum ParsedEndpoint: Hashable, Sendable {
    case address(SocketAddress)
    /// `localhost` or a name below it: both loopback addresses.
    case localhost(port: UInt16)
    case host(String, port: UInt16)

    /// Parses `example.com:80` and every text that `SocketAddress` accepts.
    /// - Parameter takesNames: true to accept names other than `localhost`.
    package init(_ text: String, takesNames: Bool = true) throws(SocketAddress.ParseError) {
        func fail(_ reason: String) -> SocketAddress.ParseError {
            SocketAddress.ParseError(text: text, reason: reason)
        }
        // Compares bytes: a delimiter with a combining mark is another `Character`.
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
        guard let place = Self(host: name, isBracketed: isBracketed, port: port, takesNames: takesNames) else {
            throw fail(Self.reason(name, takesNames: takesNames))
        }
        self = place
    }

    /// - Parameters:
    ///   - host: an address without brackets, or a name.
    ///   - isBracketed: true if `host` was in brackets, like IPv6 addresses.
    package init?(host: Substring, isBracketed: Bool, port: UInt16, takesNames: Bool = true) {
        if !isBracketed && Self.isLocalhost(host) {
            self = .localhost(port: port)
        } else if let address = SocketAddress(host: String(host), port: port), isBracketed == address.isIPv6 {
            self = .address(address)
        } else if takesNames && !isBracketed && Self.isHostName(host) {
            self = .host(String(host), port: port)
        } else {
            return nil
        }
    }

    package static func reason(_ host: Substring, takesNames: Bool = true) -> String {
        let rest = takesNames ? "nor the name of a host" : "and names are not looked up"
        // A percent sign without a colon comes from an escaped name; an address with a zone has a colon.
        let isEscaped = host.utf8.contains(UInt8(ascii: "%")) && !host.utf8.contains(UInt8(ascii: ":"))
        let isInternational = takesNames && (isEscaped || host.utf8.contains { $0 >= 0x80 })
        let cure = isInternational ? "; write an international name in ASCII, as xn--bcher-kva.example" : ""
        return "'\(host)' is neither an IPv4 nor an IPv6 address, \(rest)\(cure)"
    }

    /// The addresses known without a lookup, IPv6 first.
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

    /// Returns true if `name` is a host name (RFC 1123, 2.1): labels of letters, digits, hyphens and underscores. A
    /// label has at most 63 bytes, the name 253 with its inner dots. The name may end with a dot.
    private static func isHostName(_ name: Substring) -> Bool {
        guard name.utf8.count <= 253, !endsInNumber(name) else { return false }
        let (dot, hyphen) = (UInt8(ascii: "."), UInt8(ascii: "-"))
        var (length, last) = (0, dot)
        for byte in withoutFinalDot(name).utf8 {
            if byte == dot {
                guard (1...63).contains(length), last != hyphen else { return false }
                length = 0
            } else {
                let isLetter = (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
                guard isLetter || isDigit(byte) || byte == UInt8(ascii: "_") || byte == hyphen && length > 0
                else { return false }
                length += 1
            }
            last = byte
        }
        return (1...63).contains(length) && last != hyphen
    }

    private static func withoutFinalDot(_ name: Substring) -> Substring {
        name.utf8.count > 1 && name.utf8.last == UInt8(ascii: ".") ? Substring(name.utf8.dropLast()) : name
    }

    /// Returns true if the last label is a number, so the text was meant as IPv4. getaddrinfo(3) accepts texts such as
    /// `127.1` and `0x7f000001` as addresses, which no reader recognises.
    static func endsInNumber(_ name: Substring) -> Bool {
        let name = withoutFinalDot(name).utf8
        let label = name.lastIndex(of: UInt8(ascii: ".")).map { name[name.index(after: $0)...] } ?? name[...]
        if label.allSatisfy(isDigit) { return !label.isEmpty }
        guard label.starts(with: "0x".utf8) || label.starts(with: "0X".utf8) else { return false }
        return label.dropFirst(2).allSatisfy {
            isDigit($0) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains($0 | 0x20)
        }
    }

    /// Returns true if `name` is `localhost` or below it, in any case, with or without a final dot: a loopback address
    /// without a lookup (RFC 6761, 6.3).
    static func isLocalhost(_ name: Substring) -> Bool {
        let short = withoutFinalDot(name).utf8
        let ending = "localhost".utf8
        guard short.count >= ending.count, zip(short.suffix(ending.count), ending).allSatisfy({ $0 | 0x20 == $1 })
        else { return false }
        let rest = short.dropLast(ending.count)
        return (rest.isEmpty || rest.last == UInt8(ascii: ".")) && isHostName(name)
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }
}
