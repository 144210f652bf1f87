import CLinux
import ReactorLibc

/// The reason that a name has no addresses, from getaddrinfo(3).
public struct NameLookupError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The name.
    public let host: String
    /// The error code from getaddrinfo, such as `EAI_NONAME`. After `EAI_AGAIN`, another attempt may succeed.
    public let code: CInt
    /// The `errno` if `code` is `EAI_SYSTEM`; otherwise 0.
    package let systemCode: CInt

    /// Creates an error for your own lookup function or for a test.
    ///
    /// ```swift
    /// throw NameLookupError(host: host, code: EAI_AGAIN)
    /// ```
    public init(host: String, code: CInt) { self.init(host: host, code: code, systemCode: 0) }

    package init(host: String, code: CInt, systemCode: CInt) {
        self.host = host
        self.code = code
        self.systemCode = systemCode
    }

    /// `look up example.invalid: Name or service not known`
    public var description: String {
        let reason = code == EAI_SYSTEM ? strerror(systemCode) : UnsafeMutablePointer(mutating: gai_strerror(code))
        return "look up \(host.inOneLine): \(reason.map { String(cString: $0) } ?? "error \(code)")"
    }
}

extension SocketAddress {
    /// Returns the addresses of `host` with `port`, in the system's order of preference (RFC 6724). Blocks the calling
    /// thread, possibly for many seconds.
    package static func lookUp(_ host: String, port: UInt16) throws(NameLookupError) -> [SocketAddress] {
        // C functions would end the name at a zero byte.
        let isOdd =
            host.utf8.contains(0) || ParsedEndpoint.endsInNumber(host[...]) && SocketAddress(host: host, port: 0) == nil
        if isOdd { throw NameLookupError(host: host, code: EAI_NONAME) }
        var hints = addrinfo()
        hints.ai_family = AF_UNSPEC
        // Without this, each address appears once per socket type.
        hints.ai_socktype = CInt(clinux_SOCK_STREAM)
        var list: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(host, nil, &hints, &list)
        guard code == 0 else {
            throw NameLookupError(host: host, code: code, systemCode: code == EAI_SYSTEM ? errno : 0)
        }
        defer { freeaddrinfo(list) }
        return sequence(first: list) { $0?.pointee.ai_next }.prefix { $0 != nil }.compactMap { entry in
            guard let info = entry?.pointee, let raw = info.ai_addr else { return nil }
            return SocketAddress(raw, info.ai_addrlen)?.with(port: port)
        }
    }
}
