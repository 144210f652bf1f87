#if TLS
/// The name that a client expects, and the names in certificates.
struct ServerNameTests {
    private func identity(_ path: KeyPath<Certificates, TLSIdentity> & Sendable) -> TLSIdentity {
        Certificates.shared[keyPath: path]
    }

    private func handshake(_ name: String, _ identity: TLSIdentity) throws -> Handshake {
        let server = try TLSServer(serverConfiguration { $0.identity = identity })
        return try net.handshake(for: name, try TLSClient(clientConfiguration()), server)
    }

    @Test(
        .tls,
        arguments: [
            ("localhost", \Certificates.commonName), ("localhost", \.otherNames), ("localhost", \.brokenNames),
            ("test", \.server), ("example.test", \.server), ("b.a.example.test", \.server), ("1.test", \.otherNames),
            ("::1", \.server), ("127.0.0.2", \.otherNames),
        ] as [(String, KeyPath<Certificates, TLSIdentity> & Sendable)])
    func aCertificateWithoutTheNameIsRefused(name: String, path: KeyPath<Certificates, TLSIdentity> & Sendable) throws {
        let ends = try handshake(name, identity(path))
        let (atClient, atServer) = (try cause(of: ends.clientReady), try cause(of: ends.serverReady))
        expect(atClient == .certificate(.wrongName) && atServer == .alert(42))
    }

    @Test(
        .tls,
        arguments: [
            ("localhost.", \Certificates.server, "localhost"), ("LocalHost", \.server, "localhost"),
            ("a.example.test", \.server, nil), ("127.0.0.1", \.server, ""),
            ("A.Example.Test.", \.server, "a.example.test"), ("xn--bcher-kva.example.test", \.server, nil),
            ("127.0.0.1", \.otherNames, ""), ("2001:DB8:0::7", \.otherNames, ""),
            ("2001:db8::7%lo", \.otherNames, ""), ("ok.test", \.brokenNames, nil),
        ] as [(String, KeyPath<Certificates, TLSIdentity> & Sendable, String?)])
    func aNameIsComparedWithoutCaseAndFinalDot(
        name: String, path: KeyPath<Certificates, TLSIdentity> & Sendable, requested: String?
    ) throws {
        let ends = try handshake(name, identity(path))
        _ = try hang(when(fulfilled: [ends.clientReady, ends.serverReady]), timeout: patience)
        expectEqual(ends.server.requestedServerName ?? "", requested ?? name, "none for an address")
    }

    @Test func aCertificateHasItsNamesAndItsTime() {
        let info = identity(\.server).certificateInfo
        expect(info.subject == "CN=localhost,O=Reactor" && info.issuer == "CN=Test Intermediate")
        expectEqual(info.dnsNames, ["localhost", "*.example.test"])
        let now = Int(time(nil))
        expect((now + 86_400...now + 3 * 86_400).contains(info.expiration) && info.derBytes.first == 0x30)
        let other = identity(\.otherNames).certificateInfo
        expect(other.dnsNames.isEmpty && other.ipAddresses == ["127.0.0.1", "2001:db8::7"])
        expect(other.uris == ["spiffe://example.test/a"] && other.emailAddresses == ["a@example.test"])
        expectEqual(identity(\.brokenNames).certificateInfo.dnsNames, ["ok.test"])
        let none = identity(\.commonName).certificateInfo
        expectEqual(none.dnsNames + none.ipAddresses + none.uris + none.emailAddresses, [])
    }

    @Test(.tls) func whatIsNoNameIsRefusedBeforeTheHandshake() throws {
        let names = [
            "", ".", ".test", ".example.test", "localhost..", "a..example.test", "*.example.test", "*", "a b.test",
            "localhost\0", "localhost\0.evil.test", "127.0.0.1\0", "127.0.0.1\0.evil.test", "bücher.test",
            "\u{212A}.test", "[::1]", "localhost:443", "-a.test", "127.1", "1.2.3.4.5", "127.0.0.1.",
            String(repeating: "a", count: 64), "b." + String(repeating: "abc.", count: 63) + "x",
        ]
        for (index, name) in names.enumerated() {
            let (near, far) = try net.pair()
            let client = try TLSClient(
                clientConfiguration { $0.serverVerification = index.isMultiple(of: 2) ? .full : .withoutName })
            let connecting = near.startTLS(as: client, serverName: name)
            expectEqual(try cause(of: connecting), .configuration, "\(name.debugDescription)")
            near.close()
            expectEqual(try hang(far.read(), timeout: patience), .end, "nothing is sent")
        }
    }
}
#endif
