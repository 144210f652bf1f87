#if TLS
/// The name that a client expects, and the names in certificates.
struct ServerNameTests {
    private func identity(_ path: KeyPath<Certificates, TLSIdentity> & Sendable) -> TLSIdentity {
        Certificates.shared[keyPath: path]
    }

    /// Begins a handshake for `name`, and calls `body` while both ends are open.
    private func handshake(
        _ name: String, _ identity: TLSIdentity, _ body: (Promise<Connection>, Promise<Connection>) throws -> Void
    ) throws {
        try withNetwork { net in
            let (near, far) = try net.pair()
            let client = try TLSClient(clientConfiguration())
            let server = try TLSServer(serverConfiguration { $0.identity = identity })
            let connecting = near.startTLS(as: client, serverName: name)
            try body(connecting, far.startTLS(as: server))
            near.abort()
            far.abort()
        }
    }

    @Test(
        arguments: [
            ("localhost", \Certificates.commonName), ("localhost", \.otherNames), ("localhost", \.brokenNames),
            ("test", \.server), ("example.test", \.server), ("b.a.example.test", \.server), ("1.test", \.otherNames),
            ("::1", \.server), ("127.0.0.2", \.otherNames),
        ] as [(String, KeyPath<Certificates, TLSIdentity> & Sendable)])
    func aCertificateWithoutTheNameIsRefused(name: String, path: KeyPath<Certificates, TLSIdentity> & Sendable) throws {
        try handshake(name, identity(path)) { connecting, accepting in
            let (atClient, atServer) = (try cause(of: connecting), try cause(of: accepting))
            expect(atClient == .certificate(.wrongName) && atServer == .alert(42))
        }
    }

    @Test(
        arguments: [
            ("localhost.", \Certificates.server, "localhost"), ("LocalHost", \.server, "localhost"),
            ("A.Example.Test.", \.server, "a.example.test"), ("xn--bcher-kva.example.test", \.server, nil),
            ("127.0.0.1", \.otherNames, ""), ("2001:DB8:0::7", \.otherNames, ""),
            ("2001:db8::7%lo", \.otherNames, ""), ("ok.test", \.brokenNames, nil),
        ] as [(String, KeyPath<Certificates, TLSIdentity> & Sendable, String?)])
    func aNameIsComparedWithoutCaseAndFinalDot(
        name: String, path: KeyPath<Certificates, TLSIdentity> & Sendable, requested: String?
    ) throws {
        try handshake(name, identity(path)) { connecting, accepting in
            let ends = try hang(when(fulfilled: [connecting, accepting]), timeout: patience)
            expectEqual((ends[1].requestedServerName ?? ""), requested ?? name, "none for an address")
        }
    }

    @Test func aCertificateHasItsAlternativeNamesByKind() {
        let other = identity(\.otherNames).certificateInfo
        expect(other.dnsNames.isEmpty && other.ipAddresses == ["127.0.0.1", "2001:db8::7"])
        expect(other.uris == ["spiffe://example.test/a"] && other.emailAddresses == ["a@example.test"])
        expectEqual(identity(\.brokenNames).certificateInfo.dnsNames, ["ok.test"])
        let none = identity(\.commonName).certificateInfo
        expectEqual(none.dnsNames + none.ipAddresses + none.uris + none.emailAddresses, [])
    }

    @Test func whatIsNoNameIsRefusedBeforeTheHandshake() throws {
        let names = [
            "", ".", ".test", ".example.test", "localhost..", "a..example.test", "*.example.test", "*", "a b.test",
            "localhost\0", "localhost\0.evil.test", "127.0.0.1\0", "127.0.0.1\0.evil.test", "bücher.test",
            "\u{212A}.test", "[::1]", "localhost:443", "-a.test", "127.1", "1.2.3.4.5", "127.0.0.1.",
            String(repeating: "a", count: 64), "b." + String(repeating: "abc.", count: 63) + "x",
        ]
        for (index, name) in names.enumerated() {
            try withNetwork { net in
                let (near, far) = try net.pair()
                let client = try TLSClient(
                    clientConfiguration { $0.serverVerification = index.isMultiple(of: 2) ? .full : .withoutName })
                let connecting = near.startTLS(as: client, serverName: name)
                expectEqual(try cause(of: connecting), .configuration, "\(name.debugDescription)")
                near.close()
                expectEqual(try hang(far.read(), timeout: patience), .end, "nothing is sent")
                far.close()
            }
        }
    }
}
#endif
