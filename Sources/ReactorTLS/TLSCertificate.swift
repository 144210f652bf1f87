#if TLS
import COpenSSL
import ReactorLibc
import Reactor

/// The values of a peer's or identity's certificate.
public struct TLSCertificate: Hashable, Sendable {
    /// The certificate's DER encoding.
    public let derBytes: [UInt8]
    /// The owner's name in the format of RFC 2253: `CN=example.org,O=Example`.
    public let subject: String
    /// The signing authority's name.
    public let issuer: String
    /// The valid DNS names in order. These and the three lists below are the alternative names. Empty names, and those
    /// with bytes other than visible ASCII, are omitted, so that no name passes for another.
    public let dnsNames: [String]
    /// The valid IP addresses, in the form of `SocketAddress.hostText`.
    public let ipAddresses: [String]
    /// The owner's URIs, such as `spiffe://example.org/service`.
    public let uris: [String]
    /// The owner's e-mail addresses.
    public let emailAddresses: [String]
    /// The end of validity, in seconds since 1970.
    public let expiration: Int

    /// - Parameter certificate: an `X509`, only read.
    init(_ certificate: OpaquePointer) {
        derBytes = Self.encode(certificate)
        subject = Self.text(X509_get_subject_name(certificate))
        issuer = Self.text(X509_get_issuer_name(certificate))
        let list = X509_get_ext_d2i(certificate, NID_subject_alt_name, nil, nil).map { OpaquePointer($0) }
        defer { GENERAL_NAMES_free(list) }
        dnsNames = Self.names(list, GEN_DNS).compactMap(Self.text)
        ipAddresses = Self.names(list, GEN_IPADD).compactMap(Self.address)
        uris = Self.names(list, GEN_URI).compactMap(Self.text)
        emailAddresses = Self.names(list, GEN_EMAIL).compactMap(Self.text)
        var time = tm()
        ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &time)
        expiration = timegm(&time)
    }

    private static func encode(_ certificate: OpaquePointer) -> [UInt8] {
        let count = Int(i2d_X509(certificate, nil))
        guard count > 0 else { return [] }
        return [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            var place = buffer.baseAddress
            initialized = max(0, Int(i2d_X509(certificate, &place)))
        }
    }

    private static func text(_ name: OpaquePointer?) -> String {
        guard let bio = BIO_new(BIO_s_mem()) else { return "" }
        defer { BIO_free(bio) }
        copenssl_print_name(bio, name)
        return [UInt8](unsafeUninitializedCapacity: 4096) { buffer, count in
            count = max(0, Int(BIO_read(bio, buffer.baseAddress, CInt(buffer.count))))
        }.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
    }

    private static func names(_ list: OpaquePointer?, _ kind: CInt) -> [[UInt8]] {
        (0..<max(0, copenssl_count_names(list))).compactMap { index in
            copenssl_name(list, index, kind).map { name in
                Array(UnsafeBufferPointer(start: ASN1_STRING_get0_data(name), count: Int(ASN1_STRING_length(name))))
            }
        }
    }

    private static func text(_ name: [UInt8]) -> String? {
        !name.isEmpty && name.allSatisfy { 0x21...0x7E ~= $0 } ? String(decoding: name, as: UTF8.self) : nil
    }

    private static func address(_ name: [UInt8]) -> String? {
        guard name.count == 4 || name.count == 16 else { return nil }
        return withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(INET6_ADDRSTRLEN)) { text in
            inet_ntop(name.count == 4 ? AF_INET : AF_INET6, name, text.baseAddress, socklen_t(text.count))
                .map { String(cString: $0) }
        }
    }
}

extension TLSCertificate: CustomStringConvertible {
    /// The subject and the issuer.
    public var description: String { "\(subject), issued by \(issuer)".inOneLine }
}
#endif
