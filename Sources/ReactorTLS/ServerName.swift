#if TLS
import Reactor

/// The name that a server's certificate must match: an IP address, or a DNS name as sent (SNI), in lower case, without
/// a final dot.
struct ServerName {
    let text: String
    let isAddress: Bool

    /// Refuses an invalid name. OpenSSL takes an empty one for "verify none" and a leading dot for all subdomains, and
    /// stops at a zero byte.
    init(_ text: String) throws(TLSError) {
        // Certificates cannot contain an address's zone.
        let isIPv6 = text.utf8.contains(UInt8(ascii: ":"))
        let host = isIPv6 ? text.prefix { $0 != "%" } : text[...]
        switch ParsedEndpoint(host: host, isBracketed: isIPv6, port: 0) {
        case .address?: (self.text, isAddress) = (String(host), true)
        case .localhost?, .host?:
            let name = host.utf8.last == UInt8(ascii: ".") ? host.dropLast() : host
            (self.text, isAddress) = (name.lowercased(), false)
        case nil:
            let hint = text.utf8.contains { $0 > 127 } ? "; write an international name in its form of xn--" : ""
            throw TLSError(
                .configuration,
                reason: "the server name \(text.debugDescription) is neither a DNS name nor an IP address\(hint)")
        }
    }
}
#endif
