#if TLS
import COpenSSL

/// Valid configurations, and refused ones.
struct TLSConfigurationTests {
    private let certificates = Certificates.shared

    // MARK: Identities

    @Test func anIdentityHasTheNamesOfItsCertificate() throws {
        let info = certificates.server.certificateInfo
        expect(info.subject == "CN=localhost,O=Reactor" && info.issuer == "CN=Test Intermediate")
        expectEqual(info.dnsNames, ["localhost", "*.example.test"])
        let now = Int(time(nil))
        expect((now + 86_400...now + 3 * 86_400).contains(info.expiration) && info.derBytes.first == 0x30)
        expect(certificates.expired.certificateInfo.expiration < now)
    }

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

    @Test(.tls) func ciphersAreAddedForAnOlderPeer() throws {
        let (client, server) = try net.tls {
            $0.maximumVersion = .tls12
            if $0.identity == nil { $0.ciphers = "ECDHE-ECDSA-AES128-SHA" } else { $0.ciphers += ":ECDHE+AES" }
        }
        expectEqual(server.tlsCipher, "ECDHE-ECDSA-AES128-SHA")
        client.abort()
        server.abort()
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
        server.abort()
        expect(client.tlsVersion == nil && client.peerCertificate == nil && client.negotiatedProtocol == nil)
    }

    @Test(.tls) func aConnectionWithoutTLSHasNoneOfIt() throws {
        let (client, server) = try net.pair()
        expect(client.tlsVersion == nil && client.tlsCipher == nil && !client.hasResumedTLSSession)
        expect(client.peerCertificate == nil && client.requestedServerName == nil)
        client.abort()
        server.abort()
    }

    @Test(.tls) func aClientShowsItsCertificateWhereItIsAskedFor() throws {
        for wish in [TLSConfiguration.ClientCertificates.required, .optional, .notRequested] {
            let (client, server) = try net.tls {
                if $0.identity == nil { $0.identity = certificates.client }
                $0.clientCertificates = wish
                $0.trustRoots = .pem(certificates.authority)
            }
            let expected = wish == .notRequested ? nil : certificates.client.certificateInfo
            expectEqual(server.peerCertificate, expected)
            client.abort()
            server.abort()
        }
    }

    @Test(.tls) func aClientMayVerifyLess() throws {
        let stranger = try TLSServer(serverConfiguration { $0.identity = certificates.other })
        let selfSigned = try TLSServer(serverConfiguration { $0.identity = certificates.selfSigned })
        let nameless = try TLSClient(clientConfiguration { $0.serverVerification = .withoutName })
        let careless = try TLSClient(clientConfiguration { $0.serverVerification = .none })
        for (client, server) in [(nameless, stranger), (careless, stranger), (careless, selfSigned)] {
            let (near, far) = try net.tls(client, server)
            near.abort()
            far.abort()
        }
        let (near, far) = try net.pair()
        expectEqual(try cause(of: near.startTLS(as: TLSClient(), serverName: nil)), .configuration)
        near.abort()
        far.abort()
    }

    @Test(.tls, arguments: ["a.example.test", "127.0.0.1", "LOCALHOST"])
    func namesAndAddressesOfTheCertificateAreAccepted(name: String) throws {
        let (near, far) = try net.pair()
        let ready = near.startTLS(as: try TLSClient(clientConfiguration()), serverName: name)
        let accepted = far.startTLS(as: try TLSServer(serverConfiguration()))
        _ = try hang(when(fulfilled: [ready, accepted]), timeout: patience)
        expect(far.requestedServerName == (name == "127.0.0.1" ? nil : name.lowercased()))
        near.abort()
        far.abort()
    }

    // MARK: Names and identities

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
            let (near, far) = try net.pair()
            let ready = near.startTLS(as: client, serverName: name)
            _ = try hang(when(fulfilled: [ready, far.startTLS(as: server)]), timeout: patience)
            expectEqual(near.peerCertificate, identity.certificateInfo)
            near.abort()
            far.abort()
        }
        let (near, far) = try net.pair()
        let ready = near.startTLS(as: client, serverName: "refused.test")
        expect(try error(of: far.startTLS(as: server)) is NoSuchName)
        expectEqual(try cause(of: ready), .alert(80))
        near.abort()
        far.abort()
    }

    // MARK: Resumption and reload

    @Test(.tls, arguments: TLSVersion.allCases) func aSessionIsResumedWithoutCertificates(version: TLSVersion)
        throws
    {
        for allows in [true, false] {
            let client = try TLSClient(clientConfiguration { $0.maximumVersion = version })
            let server = try TLSServer(serverConfiguration { $0.resumesSessions = allows })
            for round in 0..<3 {
                let (near, far) = try net.tls(client, server)
                expect(near.hasResumedTLSSession == (allows && round > 0))
                expect(far.hasResumedTLSSession == (allows && round > 0))
                expect(near.peerCertificate != nil, "that of the first handshake")
                // The tickets of TLS 1.3 arrive after the handshake.
                try hang(far.write("x"), timeout: patience)
                expectEqual(try hang(near.receive(), timeout: patience), [0x78])
                near.close()
                _ = try hang(far.read(), timeout: patience)
                hang(far.close())
            }
        }
    }

    @Test(.tls) func aReloadIsSeenByHandshakesThatBeginAfterIt() throws {
        let folder = CertificateFolder()
        func store(_ chain: [UInt8], _ key: [UInt8]) throws {
            try folder.write(chain, to: "chain")
            try folder.write(key, to: "key")
        }
        try store(certificates.serverChain, certificates.serverKey)
        try folder.run(
            """
            openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout new.key -subj /CN=new -days 2 \
                -out new.pem
            """)
        let identity = try TLSIdentity(
            certificateChainFile: "\(folder.path)/chain", privateKeyFile: "\(folder.path)/key")
        let server = try TLSServer(TLSConfiguration(identity: identity))
        let client = try TLSClient(clientConfiguration { $0.serverVerification = .none })
        let before = try net.tls(client, server)
        expectEqual(before.client.peerCertificate?.subject, "CN=localhost,O=Reactor")
        // Only one of the files has been replaced.
        try folder.write(try folder.read("new.pem"), to: "chain")
        expectRefusal("key values mismatch") { try server.reload() }
        let between = try net.tls(client, server)
        expectEqual(between.client.peerCertificate?.subject, "CN=localhost,O=Reactor")
        try folder.write(try folder.read("new.key"), to: "key")
        try server.reload()
        let after = try net.tls(client, server)
        expect(after.client.peerCertificate?.subject == "CN=new" && !after.client.hasResumedTLSSession)
        // Open connections continue.
        try hang(before.client.write("still"), timeout: patience)
        expectEqual(try hang(before.server.receive(), timeout: patience), Array("still".utf8))
        for ends in [before, between, after] {
            ends.client.abort()
            ends.server.abort()
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
