#if TLS
import COpenSSL

/// Valid configurations, and refused ones.
struct TLSConfigurationTests {
    private let certificates = Certificates.shared

    // MARK: Identities

    @Test func anEncryptedKeyNeedsItsPassword() throws {
        let (chain, key) = (certificates.serverChain, certificates.encryptedKey)
        _ = try TLSIdentity(certificateChain: chain, privateKey: key, password: "secret")
        for password in [nil, "", "wrong"] {
            expectRefusal("private key") {
                _ = try TLSIdentity(certificateChain: chain, privateKey: key, password: password)
            }
        }
    }

    @Test func whatIsNoIdentityIsRefused() throws {
        let (chain, key) = (certificates.serverChain, certificates.serverKey)
        expectRefusal("there is no certificate") { _ = try TLSIdentity(certificateChain: [], privateKey: key) }
        expectRefusal("there is no certificate") { _ = try TLSIdentity(certificateChain: key, privateKey: key) }
        expectRefusal("private key") { _ = try TLSIdentity(certificateChain: chain, privateKey: chain) }
        expectRefusal("certificate chain") {
            _ = try TLSIdentity(certificateChain: chain.dropLast(100), privateKey: key)
        }
        expectRefusal("key values mismatch") {
            _ = try TLSIdentity(certificateChain: certificates.authority, privateKey: key)
        }
        expectRefusal("/nowhere/chain.pem: No such file") {
            _ = try TLSIdentity(certificateChainFile: "/nowhere/chain.pem", privateKeyFile: "/nowhere/key.pem")
        }
        expectRefusal("Is a directory") { _ = try TLSIdentity(certificateChainFile: "/", privateKeyFile: "/") }
    }

    @Test func settingsThatOpenSSLRefusesAreNamed() throws {
        func refused(_ text: String, _ change: (inout TLSConfiguration) -> Void) {
            expectRefusal(text) { _ = try TLSServer(serverConfiguration(change)) }
        }
        refused("a server needs an identity") { $0.identity = nil }
        refused("ciphers 'nonsense'") { $0.ciphers = "nonsense" }
        refused("cipherSuites 'nonsense'") { $0.cipherSuites = "nonsense" }
        refused("1 to 255 bytes") { $0.applicationProtocols = ["http/1.1", ""] }
        refused("1 to 255 bytes") { $0.applicationProtocols = [String(repeating: "x", count: 256)] }
        refused("no version") {
            $0.minimumVersion = .tls13
            $0.maximumVersion = .tls12
        }
        refused("trust roots") {
            $0.clientCertificates = .optional
            $0.trustRoots = .pem([1, 2, 3])
        }
        expectRefusal("/nowhere") {
            _ = try TLSClient(clientConfiguration { $0.trustRoots = .file("/nowhere") })
        }
    }

    @Test func theDefaultCiphersAreForwardSecretAndAuthenticated() throws {
        let context = try #require(SSL_CTX_new(TLS_method()))
        defer { SSL_CTX_free(context) }
        expectEqual(SSL_CTX_set_cipher_list(context, TLSConfiguration().ciphers), 1)
        let ssl = try #require(SSL_new(context))
        defer { SSL_free(ssl) }
        let names = (0..<40).compactMap { SSL_get_cipher_list(ssl, $0) }.map { String(cString: $0) }
        expectEqual(names.count, 9, "three of TLS 1.3; three with ECDSA and three with RSA of TLS 1.2")
        for name in names {
            expect(name.hasPrefix("TLS_") || name.hasPrefix("ECDHE-"))
            expect(name.contains("GCM") || name.contains("CHACHA20"))
        }
    }

    // MARK: What a handshake agrees on

    @Test(.tls, arguments: TLSVersion.allCases) func theEndsKnowWhatTheyHaveAgreedOn(version: TLSVersion) throws {
        let (client, server) = try net.tls {
            $0.maximumVersion = version
            $0.applicationProtocols = $0.identity == nil ? ["unknown", "h2", "http/1.1"] : ["http/1.1", "h2"]
            $0.ciphers = "ECDHE-ECDSA-AES128-GCM-SHA256"
            $0.cipherSuites = "TLS_CHACHA20_POLY1305_SHA256"
        }
        let cipher = version == .tls12 ? "ECDHE-ECDSA-AES128-GCM-SHA256" : "TLS_CHACHA20_POLY1305_SHA256"
        for end in [client, server] {
            expect(end.tlsVersion == version && end.tlsCipher == cipher && !end.hasResumedTLSSession)
            expectEqual(end.negotiatedProtocol, "http/1.1", "the server's order counts")
        }
        expect(client.peerCertificate == certificates.server.certificateInfo && server.peerCertificate == nil)
        expectEqual(server.requestedServerName, "localhost")
        client.abort()
        expect(client.tlsVersion == nil && client.peerCertificate == nil && client.negotiatedProtocol == nil)
    }

    @Test(.tls) func aClientShowsItsCertificateWhereItIsAskedFor() throws {
        for wish in [TLSConfiguration.ClientCertificates.required, .optional, .notRequested] {
            let (_, server) = try net.tls {
                if $0.identity == nil { $0.identity = certificates.client }
                $0.clientCertificates = wish
                $0.trustRoots = .pem(certificates.authority)
            }
            let expected = wish == .notRequested ? nil : certificates.client.certificateInfo
            expectEqual(server.peerCertificate, expected)
        }
    }

    @Test(.tls) func aClientMayVerifyLess() throws {
        let stranger = try TLSServer(serverConfiguration { $0.identity = certificates.other })
        let selfSigned = try TLSServer(serverConfiguration { $0.identity = certificates.selfSigned })
        let nameless = try TLSClient(clientConfiguration { $0.serverVerification = .withoutName })
        let careless = try TLSClient(clientConfiguration { $0.serverVerification = .none })
        for (client, server) in [(nameless, stranger), (careless, stranger), (careless, selfSigned)] {
            _ = try net.tls(client, server)
        }
        let withoutName = try net.handshake(for: nil, TLSClient(), stranger)
        expectEqual(try cause(of: withoutName.clientReady), .configuration)
    }

    @Test(.tls) func anIdentityIsChosenByTheName() throws {
        struct NoSuchName: Error {}
        let server = try TLSServer(
            serverConfiguration {
                $0.identityForName = { name in
                    if name == "refused.test" { throw NoSuchName() }
                    return name == "other.test" ? Certificates.shared.other : nil
                }
            })
        let client = try TLSClient(clientConfiguration())
        for (name, identity) in [("other.test", certificates.other), ("localhost", certificates.server)] {
            let ends = try net.handshake(for: name, client, server)
            _ = try hang(when(fulfilled: [ends.clientReady, ends.serverReady]), timeout: patience)
            expectEqual(ends.client.peerCertificate, identity.certificateInfo)
        }
        let ends = try net.handshake(for: "refused.test", client, server)
        expect(try error(of: ends.serverReady) is NoSuchName)
        expectEqual(try cause(of: ends.clientReady), .alert(80))
    }

    @Test(.tls, arguments: TLSVersion.allCases) func aSessionIsResumedWithoutCertificates(version: TLSVersion)
        throws
    {
        for allows in [true, false] {
            let client = try TLSClient(clientConfiguration { $0.maximumVersion = version })
            let server = try TLSServer(serverConfiguration { $0.resumesSessions = allows })
            for round in 0..<3 { try net.converse(client, server, isResumed: allows && round > 0) }
        }
    }
}

/// Expects a `TLSError` of the configuration, whose text contains `text`.
func expectRefusal(_ text: String, at place: SourceLocation = #_sourceLocation, _ body: () throws -> Void) {
    do {
        try body()
        Issue.record("not refused", sourceLocation: place)
    } catch let error as TLSError {
        #expect(error.cause == .configuration && "\(error)".contains(text), "\(error)", sourceLocation: place)
    } catch { Issue.record(error, sourceLocation: place) }
}
#endif
