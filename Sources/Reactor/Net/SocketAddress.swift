import CLinux
import ReactorLibc

/// A socket's address: IPv4 or IPv6 with a port, or a Unix path or abstract name.
///
/// ```swift
/// let address = try SocketAddress("127.0.0.1:7000")       // also [::1]:7000, unix:/run/service.sock, unix:@name
/// ```
public struct SocketAddress: Hashable, Sendable {
    enum Host: Hashable {
        // In network byte order.
        case v4(UInt32)
        case v6(UInt64, UInt64, scope: UInt32)
        case unix(UnixSocketPath)
    }

    let host: Host
    private var number: UInt16

    init(host: Host, port: UInt16) {
        self.host = host
        number = port
    }

    /// The port in this machine's byte order. If it is 0, the kernel picks a port at bind. Always 0 for a Unix address;
    /// setting it has no effect.
    public var port: UInt16 {
        get { number }
        set { if !isUnix { number = newValue } }
    }

    /// The error for text that is not an address.
    public struct ParseError: Error, Hashable, Sendable, CustomStringConvertible {
        package let text: String
        package let reason: String
        /// `'1.2.3.4' is not an address: the port is missing; write HOST:PORT`
        public var description: String { "'\(text.inOneLine)' is not an address: \(reason)" }
    }

    // MARK: Making

    /// Parses an address without looking up names.
    ///
    /// Accepts `127.0.0.1:7000`, `[::1]:7000`, `[fe80::1%eth0]:7000`, `unix:/run/service.sock`, and `unix:@name` for an
    /// abstract name. `localhost:7000` means only 127.0.0.1 here; `connect` and `Listener.bind` take an `Endpoint` and
    /// use both loopback addresses. All other host names are refused. (Write a relative path that begins with an @ as
    /// `unix:./@name`.)
    public init(_ text: String) throws(ParseError) {
        self = try ParsedEndpoint(text, takesNames: false).addresses.last!
    }

    /// Creates an address from a numeric host, or 127.0.0.1 from `localhost`; `nil` for any other text.
    public init?(host: String, port: UInt16) {
        // C functions would end the text at a zero byte.
        guard !host.utf8.contains(0) else { return nil }
        var v4 = in_addr()
        if inet_pton(AF_INET, ParsedEndpoint.isLocalhost(host[...]) ? "127.0.0.1" : host, &v4) == 1 {
            self.init(host: .v4(v4.s_addr), port: port)
            return
        }
        let parts = host.parts(separatedBy: "%", maxSplits: 1)
        var v6 = in6_addr()
        guard inet_pton(AF_INET6, String(parts[0]), &v6) == 1 else { return nil }
        var scope: UInt32 = 0
        if parts.count == 2 {
            scope = UInt32(decimal: parts[1]) ?? if_nametoindex(String(parts[1]))
            guard scope != 0 else { return nil }
        }
        let (high, low) = withUnsafeBytes(of: v6) {
            ($0.loadUnaligned(as: UInt64.self), $0.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
        }
        self.init(host: .v6(high, low, scope: scope), port: port)
    }

    /// - Parameter unixPath: the path, at most 107 bytes in UTF-8.
    package init(unixPath: String) throws(ParseError) { try self.init(unix: unixPath, isAbstract: false) }

    /// Creates a Unix address in the kernel's abstract space. The name belongs to the network namespace, has no file or
    /// permissions, and disappears with its socket.
    /// - Parameter name: the name, at most 107 bytes in UTF-8.
    package init(abstract name: String) throws(ParseError) { try self.init(unix: name, isAbstract: true) }

    private init(unix name: String, isAbstract: Bool) throws(ParseError) {
        let bytes = Array(name.utf8)
        if let problem = UnixSocketPath.problem(of: bytes, isAbstract: isAbstract) {
            throw ParseError(text: "unix:\(isAbstract ? "@" : "")\(name)", reason: problem)
        }
        self.init(host: .unix(UnixSocketPath(bytes: bytes, isAbstract: isAbstract)), port: 0)
    }

    /// The loopback addresses of both families with `port`, IPv6 first (RFC 6724).
    package static func loopbacks(port: UInt16) -> [SocketAddress] {
        [SocketAddress(host: .v6(0, UInt64(1).bigEndian, scope: 0), port: port), .loopback(port: port)]
    }

    // MARK: Asking

    package var isIPv6: Bool {
        if case .v6 = host { true } else { false }
    }

    /// True for 0.0.0.0 and ::.
    package var isUnspecified: Bool {
        switch host {
        case .v4(let address): address == 0
        case .v6(let high, let low, _): high == 0 && low == 0
        case .unix: false
        }
    }

    /// True for 127.0.0.0/8 and ::1.
    package var isLoopback: Bool {
        switch host {
        case .v4(let address): UInt32(bigEndian: address) >> 24 == 127
        case .v6(let high, let low, _): high == 0 && UInt64(bigEndian: low) == 1
        case .unix: false
        }
    }

    package var isUnix: Bool {
        if case .unix = host { true } else { false }
    }

    /// The Unix path; `nil` for an abstract name or another address.
    package var unixPath: String? {
        if case .unix(let name) = host, !name.isAbstract { name.name } else { nil }
    }

    /// The address without port and brackets: `127.0.0.1`, `::1`. For a Unix address, the text after `unix:`; control
    /// characters are escaped, because a peer chooses its name.
    public var hostText: String {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(INET6_ADDRSTRLEN)) { buffer in
            switch host {
            case .v4(let address):
                var raw = in_addr(s_addr: address)
                inet_ntop(AF_INET, &raw, buffer.baseAddress!, socklen_t(INET_ADDRSTRLEN))
                return String(cString: buffer.baseAddress!)
            case .v6(let high, let low, let scope):
                var raw = (high, low)
                inet_ntop(AF_INET6, &raw, buffer.baseAddress!, socklen_t(INET6_ADDRSTRLEN))
                return String(cString: buffer.baseAddress!) + (scope == 0 ? "" : "%\(scope)")
            case .unix(let name):
                return name.text.inOneLine
            }
        }
    }
}

extension SocketAddress: CustomStringConvertible {
    /// The text for `init(_:)`: `127.0.0.1:7000`, `[::1]:7000`, `unix:/run/service.sock`, `unix:@name`. Control
    /// characters in a Unix name are escaped, so a log line stays one line.
    public var description: String {
        switch host {
        case .v4: "\(hostText):\(port)"
        case .v6: "[\(hostText)]:\(port)"
        case .unix: "unix:\(hostText)"
        }
    }
}
