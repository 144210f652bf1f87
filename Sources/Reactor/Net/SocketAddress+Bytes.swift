extension SocketAddress {
    /// The 4 or 16 bytes of an IPv4 or IPv6 address in network order, as in SOCKS and DNS, without port and zone. Empty
    /// for a Unix address.
    public var hostBytes: [UInt8] {
        switch host {
        case .v4(let address): Self.bytes(of: UInt32(bigEndian: address))
        case .v6(let high, let low, _):
            Self.bytes(of: UInt64(bigEndian: high)) + Self.bytes(of: UInt64(bigEndian: low))
        case .unix: []
        }
    }

    /// Creates an address from 4 or 16 bytes in network order; `nil` for another number of bytes.
    ///
    /// ```swift
    /// let server = SocketAddress(hostBytes: [127, 0, 0, 1], port: 53)!
    /// ```
    public init?(hostBytes bytes: some Collection<UInt8>, port: UInt16) {
        switch bytes.count {
        case 4: self.init(host: .v4((Self.number(bytes) as UInt32).bigEndian), port: port)
        case 16:
            let (high, low) = (Self.number(bytes.prefix(8)) as UInt64, Self.number(bytes.suffix(8)) as UInt64)
            self.init(host: .v6(high.bigEndian, low.bigEndian, scope: 0), port: port)
        default: return nil
        }
    }

    private static func bytes<Number: FixedWidthInteger>(of number: Number) -> [UInt8] {
        stride(from: Number.bitWidth - 8, through: 0, by: -8).map { UInt8(truncatingIfNeeded: number >> Number($0)) }
    }

    private static func number<Number: FixedWidthInteger>(_ bytes: some Collection<UInt8>) -> Number {
        bytes.reduce(0) { $0 << 8 | Number($1) }
    }
}
