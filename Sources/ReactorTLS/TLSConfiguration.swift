#if TLS
import Reactor

/// The settings of a `TLSClient` or a `TLSServer`. The defaults are safe: TLS 1.2 at least, ciphers that authenticate what
/// they encrypt (AEAD) with keys that are not kept (forward secrecy), and a client verifies the certificate and the name of
/// its server against the system's authorities.
///
/// ```swift
/// var configuration = TLSConfiguration(
///     identity: try TLSIdentity(certificateChainFile: "server.pem", privateKeyFile: "server.key"))
/// configuration.applicationProtocols = ["http/1.1"]
/// let server = try TLSServer(configuration)
/// ```
public struct TLSConfiguration: Sendable {
    /// The certificate and key of this side. A server needs one, unless `identityForName` always has one; a client has one
    /// if its servers ask for it.
    public var identity: TLSIdentity?

    /// Which authorities may have signed the certificates of peers.
    public var trustRoots = TLSTrustRoots.system

    /// What a client verifies of its server. A server does not use it.
    public var serverVerification = ServerVerification.full

    /// Whether a server asks its clients for a certificate. A client does not use it.
    public var clientCertificates = ClientCertificates.notRequested

    /// The protocols that may be spoken inside, the preferred one first (ALPN, RFC 7301), such as `["h2", "http/1.1"]`: each
    /// of 1 to 255 bytes. If both sides name some, the server chooses the first of its own that the client has, and refuses
    /// the handshake if there is none.
    public var applicationProtocols: [String] = []

    /// The oldest version to speak.
    public var minimumVersion = TLSVersion.tls12

    /// The newest version to speak.
    public var maximumVersion = TLSVersion.tls13

    /// The ciphers of TLS 1.2, as openssl-ciphers(1) describes. Older peers may need more: `ciphers += ":ECDHE+AES"` adds
    /// those with CBC, and `"DEFAULT"` stands for those of OpenSSL, some of which have no forward secrecy.
    public var ciphers = "ECDHE+AESGCM:ECDHE+CHACHA20"

    /// The ciphers of TLS 1.3, such as `"TLS_AES_128_GCM_SHA256"`. `nil` for OpenSSL's default.
    public var cipherSuites: String?

    /// Whether sessions may be resumed, which saves the exchange of certificates. A server gives its clients tickets, which
    /// are void after a reload unless it has `ticketKeys`; a client keeps the tickets of its servers, two for each name and
    /// 256 names at most.
    public var resumesSessions = true

    /// The keys of a server's tickets, for servers that resume each other's sessions and for tickets that outlive a reload:
    /// the first encrypts new tickets, and all decrypt. Without any, each `TLSServer`, and each reload of it, has a key of
    /// its own, which all loops share. A client does not use them.
    public var ticketKeys: [TLSTicketKey] = []

    /// How long a handshake may take. `nil` for no limit.
    public var handshakeTimeout: Duration? = .seconds(10)

    /// Finds the identity for the DNS name that a client has asked for (SNI), in lower case; `nil` for `identity`. A server
    /// calls it in each handshake that is not resumed, on the thread of the connection's loop, so it must return at once. If
    /// it throws, the handshake is refused. What is no DNS name, such as a path, counts as no name.
    public var identityForName: (@Sendable (String) throws -> TLSIdentity?)?

    /// Settings with the defaults of each property.
    public init(identity: TLSIdentity? = nil) { self.identity = identity }

    /// What a client verifies of its server.
    public enum ServerVerification: Hashable, Sendable {
        /// That a trusted authority has signed its certificate, for the name or the address that was connected to: a DNS name
        /// or an IP address among its alternative names. The common name of its subject does not count.
        case full
        /// That a trusted authority has signed its certificate, for whatever name.
        case withoutName
        /// Verifies nothing: a host that can intercept the connection can read and change all data.
        case none
    }

    /// Whether a server asks its clients for a certificate. One that a client sends is verified, and refused unless a
    /// trusted authority has signed it.
    public enum ClientCertificates: Hashable, Sendable {
        /// It does not ask.
        case notRequested
        /// It asks, and accepts clients without one.
        case optional
        /// It asks, and refuses clients without one.
        case required
    }
}

/// Which authorities may have signed the certificates of peers.
public enum TLSTrustRoots: Hashable, Sendable {
    /// Those of the system: where the OpenSSL of the system looks, or the environment's `SSL_CERT_FILE` and `SSL_CERT_DIR`.
    case system
    /// The certificates of a PEM file, and no others.
    case file(String)
    /// The certificates of a PEM text, and no others.
    case pem([UInt8])
}
#endif
