#if TLS
import COpenSSL
import Promises
import Reactor
import ReactorIO

// The handshake's results: `nil` before the handshake's end, without TLS, and once the connection is closed.

extension Connection {
    /// The peer's certificate, verified unless the configuration says otherwise. A client always has its server's; a
    /// server has one if it asked and the client sent one.
    public var peerCertificate: TLSCertificate? {
        guard let ssl, let certificate = SSL_get0_peer_certificate(ssl) else { return nil }
        return TLSCertificate(certificate)
    }

    /// The negotiated application protocol (ALPN), if any.
    public var negotiatedProtocol: String? {
        guard let tls, let ssl = tls.ssl else { return nil }
        var name: UnsafePointer<UInt8>?
        var count: CUnsignedInt = 0
        SSL_get0_alpn_selected(ssl, &name, &count)
        guard let name, count > 0 else { return nil }
        let bytes = UnsafeBufferPointer(start: name, count: Int(count))
        // A server may answer with a protocol that was not offered.
        return tls.context.configuration.applicationProtocols.first { $0.utf8.elementsEqual(bytes) }
    }

    /// The TLS version.
    public var tlsVersion: TLSVersion? { ssl.flatMap { TLSVersion(rawValue: SSL_version($0)) } }

    /// The cipher, by OpenSSL's name, such as `TLS_AES_256_GCM_SHA384`.
    public var tlsCipher: String? {
        guard let ssl, let cipher = SSL_get_current_cipher(ssl) else { return nil }
        return SSL_CIPHER_get_name(cipher).map { String(cString: $0) }
    }

    /// True when the handshake resumed an earlier session.
    public var hasResumedTLSSession: Bool { ssl.map { SSL_session_reused($0) == 1 } ?? false }

    /// For servers: the DNS name that the client asked for (SNI), in lower case; `nil` if it sent no valid name.
    public var requestedServerName: String? { tls?.requestedName }

    private var tls: TLSFilter? { installedFilter as? TLSFilter }
    private var ssl: OpaquePointer? { tls?.ssl }
}
#endif
