import COpenSSL
import Glibc

/// A certificate, as values: that of a peer, or of an identity.
public struct TLSCertificate: Hashable, Sendable {
    /// The encoded certificate, DER.
    public let derBytes: [UInt8]
    /// The name of its owner, as RFC 2253 writes it: `CN=example.org,O=Example`.
    public let subject: String
    /// The name of the authority that has signed it.
    public let issuer: String
    /// The names in it for which it may be used: DNS names, in their order.
    public let dnsNames: [String]
    /// The end of its validity, in seconds since 1970.
    public let expiration: Int

    /// - Parameter certificate: an `X509`, which is only read.
    init(_ certificate: OpaquePointer) {
        derBytes = Self.encode(certificate)
        subject = Self.text(X509_get_subject_name(certificate))
        issuer = Self.text(X509_get_issuer_name(certificate))
        dnsNames = Self.names(of: certificate)
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

    private static func names(of certificate: OpaquePointer) -> [String] {
        guard let list = X509_get_ext_d2i(certificate, NID_subject_alt_name, nil, nil) else { return [] }
        let names = OpaquePointer(list)
        defer { GENERAL_NAMES_free(names) }
        return (0..<copenssl_count_names(names)).compactMap { index in
            guard let text = copenssl_dns_name(names, index) else { return nil }
            let bytes = UnsafeBufferPointer(
                start: ASN1_STRING_get0_data(text), count: Int(ASN1_STRING_length(text)))
            return String(decoding: bytes, as: UTF8.self)
        }
    }
}

extension TLSCertificate: CustomStringConvertible {
    /// The subject and the issuer.
    public var description: String { "\(subject), issued by \(issuer)" }
}
