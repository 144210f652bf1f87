#if TLS
import COpenSSL
import Reactor

/// The reason why a handshake failed, a stream broke, or a configuration is unusable.
///
/// Two errors have other types: `ConnectionFilterError.truncated` for a peer that closes during the handshake or
/// without an end record, and `PromiseError.timedOut` for a slow handshake.
public struct TLSError: Error, Hashable, Sendable {
    /// The kind of failure.
    public enum Cause: Hashable, Sendable {
        /// A file, certificate, key, cipher or name of the configuration is unusable.
        case configuration
        /// This side refused the peer's certificate.
        case certificate(CertificateFault)
        /// The peer refused with this alert (RFC 8446, 6): 42 to 49 concern this side's certificate, 70 the version, 40
        /// the parameters, 120 the protocols.
        case alert(UInt8)
        /// The peer does not speak TLS, broke the protocol, or has nothing in common with this side. `reason` is
        /// OpenSSL's number (`SSL_R_…`).
        case handshakeOrRecord(reason: Int)
    }

    /// The kind of failure.
    public let cause: Cause
    /// OpenSSL's text.
    public let reason: String
    /// The peer's address, if any.
    public let peer: SocketAddress?

    /// Makes an error, for tests of code that handles it.
    public init(_ cause: Cause, reason: String, peer: SocketAddress? = nil) {
        self.cause = cause
        self.reason = reason
        self.peer = peer
    }
}

extension TLSError: CustomStringConvertible {
    /// A text for humans: `TLS with 192.0.2.7:443: certificate has expired`.
    public var description: String {
        let subject = cause == .configuration ? "TLS configuration" : "TLS\(peer.map { " with \($0)" } ?? "")"
        return "\(subject): \(reason)"
    }
}

/// The reason why a peer's certificate was refused.
public enum CertificateFault: Hashable, Sendable {
    /// It does not match the connected name or address.
    case wrongName
    /// It, or a certificate in its chain, has expired.
    case expired
    /// It, or a certificate in its chain, is not valid yet.
    case notYetValid
    /// It is self-signed and not trusted.
    case selfSigned
    /// Its chain ends at an untrusted authority, or lacks an intermediate certificate.
    case unknownAuthority
    /// The peer did not send a required certificate.
    case missing
    /// Another error of verification, with OpenSSL's number (`X509_V_ERR_…`).
    case other(Int)

    init(verifyResult code: Int) {
        self =
            switch CInt(truncatingIfNeeded: code) {
            case X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH: .wrongName
            case X509_V_ERR_CERT_HAS_EXPIRED: .expired
            case X509_V_ERR_CERT_NOT_YET_VALID: .notYetValid
            case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT: .selfSigned
            case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
                X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN, X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
                .unknownAuthority
            default: .other(code)
            }
    }
}
#endif
