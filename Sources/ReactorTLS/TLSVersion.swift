#if TLS
import COpenSSL

/// A protocol version.
public enum TLSVersion: Int32, Comparable, Hashable, Sendable, CaseIterable {
    /// TLS 1.2, RFC 5246.
    case tls12 = 0x0303
    /// TLS 1.3, RFC 8446.
    case tls13 = 0x0304

    /// True if the first version is older.
    public static func < (one: TLSVersion, other: TLSVersion) -> Bool { one.rawValue < other.rawValue }
}

extension TLSVersion: CustomStringConvertible {
    /// `TLSv1.2` or `TLSv1.3`, as in OpenSSL.
    public var description: String { self == .tls12 ? "TLSv1.2" : "TLSv1.3" }
}
#endif
