#if TLS
import Libc

/// The name that a server's certificate must match: an IP address, or a DNS name as it is sent (SNI), in lower case and
/// without a final dot.
struct ServerName {
    let text: String
    let isAddress: Bool

    /// Refuses an invalid name: OpenSSL takes an empty one for "verify none" and one that begins with a dot for all
    /// subdomains, and stops reading at a zero byte.
    init(_ text: String) throws(TLSError) {
        let whole = Array(text.utf8)
        // A certificate cannot contain the zone of an address.
        let address = String(text.prefix { $0 != "%" })
        var bytes = in6_addr()
        isAddress =
            !whole.contains(0)
            && (inet_pton(AF_INET, text, &bytes) == 1 || inet_pton(AF_INET6, address, &bytes) == 1)
        if isAddress {
            self.text = address
            return
        }
        let name = whole.last == UInt8(ascii: ".") ? whole.dropLast() : whole[...]
        let labels = name.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard name.count <= 253, labels.allSatisfy(Self.isLabel), !labels.last!.allSatisfy(Self.isDigit) else {
            let hint = whole.contains { $0 > 127 } ? "; write an international name in its form of xn--" : ""
            throw TLSError(
                .configuration,
                reason: "the server name \(text.debugDescription) is neither a DNS name nor an IP address\(hint)")
        }
        self.text = String(decoding: name, as: UTF8.self).lowercased()
    }

    private static func isLabel(_ bytes: ArraySlice<UInt8>) -> Bool {
        1...63 ~= bytes.count && bytes.first != UInt8(ascii: "-")
            && bytes.allSatisfy { byte in
                isDigit(byte) || UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte | 0x20
                    || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
            }
    }

    private static func isDigit(_ byte: UInt8) -> Bool { UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte }
}
#endif
