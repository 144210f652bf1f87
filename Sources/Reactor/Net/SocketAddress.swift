import CLinux
import Glibc

/// An IPv4 or IPv6 address with a port.
public struct SocketAddress: Hashable, Sendable {
    private enum Host: Hashable {
        // Network byte order, as the kernel keeps them.
        case v4(UInt32)
        case v6(UInt64, UInt64, scope: UInt32)
    }

    private var host: Host
    /// The port, in this machine's byte order; 0 asks the kernel to pick one when bound.
    public var port: UInt16

    /// What is wrong with the text of an address.
    public struct ParseError: Error, Hashable, Sendable, CustomStringConvertible {
        /// The text.
        public let text: String
        /// What was wrong with it.
        public let reason: String
        /// `'1.2.3.4' is no address: the port is missing; write HOST:PORT`
        public var description: String { "'\(text)' is no address: \(reason)" }
    }

    /// Parses `127.0.0.1:7000`, `[::1]:7000`, `[fe80::1%eth0]:7000` or `localhost:7000`, which is 127.0.0.1. Other names
    /// are refused: nothing is looked up.
    public init(_ text: String) throws(ParseError) {
        func fail(_ reason: String) -> ParseError { ParseError(text: text, reason: reason) }
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
        guard let address = Self(host: String(name), port: port), isBracketed == address.isIPv6 else {
            throw fail("'\(name)' is neither an IPv4 nor an IPv6 address, and names are not looked up")
        }
        self = address
    }

    /// The numeric address `host` (without brackets), or `localhost`; `nil` if it is neither.
    public init?(host: String, port: UInt16) {
        self.port = port
        // To C the text would end there.
        guard !host.utf8.contains(0) else { return nil }
        var v4 = in_addr()
        if inet_pton(AF_INET, host == "localhost" ? "127.0.0.1" : host, &v4) == 1 {
            self.host = .v4(v4.s_addr)
            return
        }
        let parts = host.split(separator: "%", maxSplits: 1, omittingEmptySubsequences: false)
        var v6 = in6_addr()
        guard inet_pton(AF_INET6, String(parts[0]), &v6) == 1 else { return nil }
        var scope: UInt32 = 0
        if parts.count == 2 {
            scope = UInt32(parts[1]) ?? if_nametoindex(String(parts[1]))
            guard scope != 0 else { return nil }
        }
        let (high, low) = withUnsafeBytes(of: v6) {
            ($0.loadUnaligned(as: UInt64.self), $0.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
        }
        self.host = .v6(high, low, scope: scope)
    }

    /// 127.0.0.1 with that port.
    public static func loopback(port: UInt16) -> SocketAddress { SocketAddress(host: "127.0.0.1", port: port)! }

    /// Whether this is an IPv6 address.
    public var isIPv6: Bool {
        if case .v6 = host { true } else { false }
    }

    /// The address without port and brackets, in its standard form: `127.0.0.1`, `::1`.
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
            }
        }
    }

    // MARK: The kernel's form

    package var family: CInt { isIPv6 ? AF_INET6 : AF_INET }

    package func withSocketAddress<Result>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result {
        switch host {
        case .v4(let address):
            var raw = sockaddr_in()
            raw.sin_family = sa_family_t(AF_INET)
            raw.sin_port = port.bigEndian
            raw.sin_addr.s_addr = address
            return Self.with(&raw, body)
        case .v6(let high, let low, let scope):
            var raw = sockaddr_in6()
            raw.sin6_family = sa_family_t(AF_INET6)
            raw.sin6_port = port.bigEndian
            withUnsafeMutableBytes(of: &raw.sin6_addr) {
                $0.storeBytes(of: high, as: UInt64.self)
                $0.storeBytes(of: low, toByteOffset: 8, as: UInt64.self)
            }
            raw.sin6_scope_id = scope
            return Self.with(&raw, body)
        }
    }

    private static func with<Raw, Result>(_ raw: inout Raw, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result)
        -> Result
    {
        withUnsafePointer(to: &raw) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<Raw>.size)) }
        }
    }

    /// `nil` for a family that is neither IPv4 nor IPv6.
    package init?(_ storage: sockaddr_storage) {
        let parsed = withUnsafeBytes(of: storage) { bytes -> SocketAddress? in
            switch CInt(storage.ss_family) {
            case AF_INET:
                let raw = bytes.loadUnaligned(as: sockaddr_in.self)
                return SocketAddress(host: .v4(raw.sin_addr.s_addr), port: UInt16(bigEndian: raw.sin_port))
            case AF_INET6:
                let raw = bytes.loadUnaligned(as: sockaddr_in6.self)
                let (high, low) = withUnsafeBytes(of: raw.sin6_addr) {
                    ($0.loadUnaligned(as: UInt64.self), $0.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
                }
                let host = Host.v6(high, low, scope: raw.sin6_scope_id)
                return SocketAddress(host: host, port: UInt16(bigEndian: raw.sin6_port))
            default:
                return nil
            }
        }
        guard let parsed else { return nil }
        self = parsed
    }

    private init(host: Host, port: UInt16) {
        self.host = host
        self.port = port
    }
}

extension SocketAddress: CustomStringConvertible {
    /// `127.0.0.1:7000`, `[::1]:7000`
    public var description: String { isIPv6 ? "[\(hostText)]:\(port)" : "\(hostText):\(port)" }
}
