#if TLS
import Reactor

/// Settings of a `TLSClient` or `TLSServer`. The defaults are safe: at least TLS 1.2, authenticating ciphers (AEAD)
/// with forward secrecy, and clients that verify the server's certificate and name against the system's authorities.
///
/// ```swift
/// var configuration = TLSConfiguration(
///     identity: try TLSIdentity(certificateChainFile: "server.pem", privateKeyFile: "server.key"))
/// configuration.applicationProtocols = ["http/1.1"]
/// let server = try TLSServer(configuration)
/// ```
public struct TLSConfiguration: Sendable {
    /// This side's certificate and key. A server needs them unless `identityForName` always returns an identity. A
    /// client needs them if its servers ask.
    public var identity: TLSIdentity?

    /// The trusted authorities.
    public var trustRoots = TLSTrustRoots.system

    /// A client's verification of its server. Not used by a server.
    public var serverVerification = ServerVerification.full

    /// A server's request for client certificates. Not used by a client.
    public var clientCertificates = ClientCertificates.notRequested

    /// The application protocols (ALPN, RFC 7301) of 1 to 255 bytes, preferred first, such as `["h2", "http/1.1"]`. If
    /// both sides name some, the server chooses the first of its own that the client has too; if there is none, it
    /// refuses the handshake.
    public var applicationProtocols: [String] = []

    /// The oldest version accepted.
    public var minimumVersion = TLSVersion.tls12

    /// The newest version accepted.
    public var maximumVersion = TLSVersion.tls13

    /// The TLS 1.2 ciphers in the format of openssl-ciphers(1). For older peers, `ciphers += ":ECDHE+AES"` adds those
    /// with CBC, and `"DEFAULT"` is OpenSSL's choice, partly without forward secrecy.
    public var ciphers = "ECDHE+AESGCM:ECDHE+CHACHA20"

    /// The TLS 1.3 ciphers, such as `"TLS_AES_128_GCM_SHA256"`. `nil` for OpenSSL's default.
    public var cipherSuites: String?

    /// True to resume sessions, which saves the exchange of certificates. A server's tickets become void at a reload
    /// unless it has `ticketKeys`. A client keeps two tickets per server name, for at most 256 names.
    public var resumesSessions = true

    /// The keys for a server's tickets, for servers that resume each other's sessions and for tickets that outlive a
    /// reload. The first key encrypts new tickets; all keys decrypt. If empty, each `TLSServer`, and each reload, makes
    /// a key for all loops. Not used by a client.
    public var ticketKeys: [TLSTicketKey] = []

    /// The time limit for a handshake; `nil` for none.
    public var handshakeTimeout: Duration? = .seconds(10)

    /// Finds the identity for the client's DNS name (SNI), in lower case; `nil` means `identity`. A server calls it in
    /// each full handshake, on the thread of the connection's loop, so it must return at once. An error refuses the
    /// handshake. An invalid DNS name, such as a path, counts as none.
    public var identityForName: (@Sendable (String) throws -> TLSIdentity?)?

    /// Default settings with this identity.
    public init(identity: TLSIdentity? = nil) { self.identity = identity }

    /// A client's verification of its server.
    public enum ServerVerification: Hashable, Sendable {
        /// A trusted authority must have signed the certificate, and its alternative names must include the connected
        /// DNS name or IP address. The subject's common name does not count.
        case full
        /// A trusted authority must have signed the certificate, for any name.
        case withoutName
        /// No verification: a host that intercepts the connection can read and change all data.
        case none
    }

    /// A server's request for client certificates. A sent certificate is refused unless a trusted authority has signed
    /// it.
    public enum ClientCertificates: Hashable, Sendable {
        /// No request.
        case notRequested
        /// Asks, and accepts clients without one.
        case optional
        /// Asks, and refuses clients without one.
        case required
    }
}

/// The trusted authorities.
public enum TLSTrustRoots: Hashable, Sendable {
    /// The system's authorities: OpenSSL's default locations, or the environment's `SSL_CERT_FILE` and `SSL_CERT_DIR`.
    case system
    /// Only the certificates of a PEM file.
    case file(String)
    /// Only the certificates of a PEM text.
    case pem([UInt8])
}
#endif
