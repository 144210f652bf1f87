extension SocketAddress {
    /// True for a unicast address on the public internet. False for this machine, private and link-local networks,
    /// documentation, and Unix addresses.
    ///
    /// Lets a program that connects to untrusted addresses stay out of its own network; see `NameLookup.allows`. The
    /// ranges come from IANA's special-purpose registries; in IPv6, only 2000::/3 is global. IPv6 addresses that
    /// contain an IPv4 address (`::ffff:0:0/96` and, for NAT64, `64:ff9b::/96`) count as that IPv4 address. The tunnels
    /// 6to4 and Teredo are not global.
    public var isGlobal: Bool {
        switch host {
        case .unix: return false
        case .v4(let address): return Self.isGlobal(UInt32(bigEndian: address))
        case .v6(let high, let low, _):
            let (high, low) = (UInt64(bigEndian: high), UInt64(bigEndian: low))
            let isMapped = high == 0 && low >> 32 == 0xFFFF
            if isMapped || high == 0x0064_FF9B_0000_0000 && low >> 32 == 0 {
                return Self.isGlobal(UInt32(truncatingIfNeeded: low))
            }
            return high >> 61 == 0b001
                && !Self.localV6.contains { high >> (64 - $0.bits) == $0.prefix >> (64 - $0.bits) }
        }
    }

    private static func isGlobal(_ address: UInt32) -> Bool {
        !localV4.contains { address >> (32 - $0.bits) == $0.prefix >> (32 - $0.bits) }
    }

    private static let localV4: [(prefix: UInt32, bits: UInt32)] = [
        (0x0000_0000, 8),  // this network
        (0x0A00_0000, 8),  // private
        (0x6440_0000, 10),  // shared by a provider's customers
        (0x7F00_0000, 8),  // loopback
        (0xA9FE_0000, 16),  // link-local, and cloud metadata
        (0xAC10_0000, 12),  // private
        (0xC000_0000, 24),  // protocols
        (0xC000_0200, 24),  // documentation
        (0xC058_6300, 24),  // 6to4 relays
        (0xC0A8_0000, 16),  // private
        (0xC612_0000, 15),  // benchmarks
        (0xC633_6400, 24),  // documentation
        (0xCB00_7100, 24),  // documentation
        (0xE000_0000, 3),  // multicast, reserved, broadcast
    ]

    /// Ranges inside 2000::/3, compared by their first 64 bits.
    private static let localV6: [(prefix: UInt64, bits: UInt64)] = [
        (0x2001_0000_0000_0000, 23),  // protocols, Teredo
        (0x2001_0DB8_0000_0000, 32),  // documentation
        (0x2002_0000_0000_0000, 16),  // 6to4
        (0x3FFF_0000_0000_0000, 20),  // documentation
    ]
}
