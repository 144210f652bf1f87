#if TLS
import Reactor

/// The settings of a `TLSClient` or a `TLSServer`. The defaults are safe: TLS 1.2 at least, ciphers that authenticate
/// what they encrypt (AEAD) with keys that are not kept (forward secrecy), and a client verifies the certificate and
/// the name of its server against the system's authorities.
///
/// ```swift
/// var configuration = TLSConfiguration(
///     identity: try TLSIdentity(certificateChainFile: "server.pem", privateKeyFile: "server.key"))
/// configuration.applicationProtocols = ["http/1.1"]
/// let server = try TLSServer(configuration)
/// ```
public struct TLSConfiguration: Sendable {
    /// The certificate and key of this side. A server needs one, unless `identityForName` always returns one; a client
    /// needs one if its servers ask for it.
    public var identity: TLSIdentity?

    /// The authorities whose certificates are trusted.
    public var trustRoots = TLSTrustRoots.system

    /// How a client verifies its server. Not used by a server.
    public var serverVerification = ServerVerification.full

    /// Whether a server asks its clients for a certificate. Not used by a client.
    public var clientCertificates = ClientCertificates.notRequested

    /// The application protocols (ALPN, RFC 7301), the preferred one first, such as `["h2", "http/1.1"]`: each of 1 to
    /// 255 bytes. If both sides name some, the server chooses the first of its own that the client has, and refuses the
    /// handshake if there is none.
    public var applicationProtocols: [String] = []

    /// The oldest version accepted.
    public var minimumVersion = TLSVersion.tls12

    /// The newest version accepted.
    public var maximumVersion = TLSVersion.tls13

    /// The ciphers of TLS 1.2, in the format of openssl-ciphers(1). Older peers may need more:
    /// `ciphers += ":ECDHE+AES"` adds those with CBC, and `"DEFAULT"` stands for OpenSSL's own, some of which have no
    /// forward secrecy.
    public var ciphers = "ECDHE+AESGCM:ECDHE+CHACHA20"

    /// The ciphers of TLS 1.3, such as `"TLS_AES_128_GCM_SHA256"`. `nil` for OpenSSL's default.
    public var cipherSuites: String?

    /// Whether sessions may be resumed, which saves the exchange of certificates. A server gives its clients tickets,
    /// which become void at a reload unless it has `ticketKeys`; a client keeps two tickets per server name, for at
    /// most 256 names.
    public var resumesSessions = true

    /// The keys of a server's tickets, for servers that resume each other's sessions and for tickets that outlive a
    /// reload: the first key encrypts new tickets, and all decrypt. If empty, each `TLSServer`, and each reload of it,
    /// makes a key that all loops share. Not used by a client.
    public var ticketKeys: [TLSTicketKey] = []

    /// The limit for a handshake. `nil` for no limit.
    public var handshakeTimeout: Duration? = .seconds(10)

    /// Finds the identity for the DNS name that a client has asked for (SNI), in lower case; `nil` for `identity`. A
    /// server calls it in each handshake that is not resumed, on the thread of the connection's loop, so it must return
    /// at once. If it throws, the handshake is refused. An invalid DNS name, such as a path, counts as no name.
    public var identityForName: (@Sendable (String) throws -> TLSIdentity?)?

    /// Default settings with this identity.
    public init(identity: TLSIdentity? = nil) { self.identity = identity }

    /// How a client verifies its server.
    public enum ServerVerification: Hashable, Sendable {
        /// A trusted authority must have signed the certificate, for the name or the address that was connected to: a
        /// DNS name or an IP address among its alternative names. The common name of the subject does not count.
        case full
        /// A trusted authority must have signed the certificate, for any name.
        case withoutName
        /// Nothing is verified: a host that can intercept the connection can read and change all data.
        case none
    }

    /// Whether a server asks its clients for a certificate. A certificate that a client sends is verified, and refused
    /// unless a trusted authority has signed it.
    public enum ClientCertificates: Hashable, Sendable {
        /// Does not ask.
        case notRequested
        /// Asks, and accepts clients without one.
        case optional
        /// Asks, and refuses clients without one.
        case required
    }
}

/// The authorities whose certificates are trusted.
public enum TLSTrustRoots: Hashable, Sendable {
    /// The system's: OpenSSL's default locations, or the environment's `SSL_CERT_FILE` and `SSL_CERT_DIR`.
    case system
    /// The certificates of a PEM file, and no others.
    case file(String)
    /// The certificates of a PEM text, and no others.
    case pem([UInt8])
}
#endif
