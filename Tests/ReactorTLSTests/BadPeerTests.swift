#if TLS
import COpenSSL

/// Peers that break the protocol, and certificates that must not be accepted: each ends with its error, on both sides.
struct BadPeerTests {
    /// A handshake that fails, and the error of each side.
    struct Case: CustomTestStringConvertible, Sendable {
        let testDescription: String
        var name = Certificates.serverName
        var client: @Sendable (inout TLSConfiguration) -> Void = { _ in }
        var server: @Sendable (inout TLSConfiguration) -> Void = { _ in }
        let atClient: TLSError.Cause
        let atServer: TLSError.Cause
    }

    static let cases: [Case] = [
        Case(
            testDescription: "wrong host name", name: "wrong.test", atClient: .certificate(.wrongName),
            atServer: .alert(42)),
        Case(
            testDescription: "wrong address", name: "127.0.0.2", atClient: .certificate(.wrongName),
            atServer: .alert(42)),
        Case(
            testDescription: "certificate of another host", server: { $0.identity = Certificates.shared.other },
            atClient: .certificate(.wrongName), atServer: .alert(42)),
        Case(
            testDescription: "expired", server: { $0.identity = Certificates.shared.expired },
            atClient: .certificate(.expired), atServer: .alert(45)),
        Case(
            testDescription: "self-signed", server: { $0.identity = Certificates.shared.selfSigned },
            atClient: .certificate(.selfSigned), atServer: .alert(48)),
        Case(
            testDescription: "unknown authority",
            client: { $0.trustRoots = .pem(Certificates.shared.stranger) },
            atClient: .certificate(.unknownAuthority), atServer: .alert(48)),
        Case(
            testDescription: "the system's authorities", client: { $0.trustRoots = .system },
            atClient: .certificate(.unknownAuthority), atServer: .alert(48)),
        Case(
            testDescription: "version too low", client: { $0.maximumVersion = .tls12 },
            server: { $0.minimumVersion = .tls13 }, atClient: .alert(70),
            atServer: .handshakeOrRecord(reason: Int(SSL_R_UNSUPPORTED_PROTOCOL))),
        Case(
            testDescription: "no cipher in common",
            client: {
                $0.maximumVersion = .tls12
                $0.ciphers = "ECDHE-ECDSA-AES128-GCM-SHA256"
            }, server: { $0.ciphers = "ECDHE-ECDSA-AES256-GCM-SHA384" }, atClient: .alert(40),
            atServer: .handshakeOrRecord(reason: Int(SSL_R_NO_SHARED_CIPHER))),
        Case(
            testDescription: "a cipher without AEAD",
            client: {
                $0.maximumVersion = .tls12
                $0.ciphers = "ECDHE-ECDSA-AES128-SHA"
            }, atClient: .alert(40), atServer: .handshakeOrRecord(reason: Int(SSL_R_NO_SHARED_CIPHER))),
        Case(
            testDescription: "no protocol in common", client: { $0.applicationProtocols = ["h2"] },
            server: { $0.applicationProtocols = ["http/1.1"] }, atClient: .alert(120),
            atServer: .handshakeOrRecord(reason: Int(SSL_R_NO_APPLICATION_PROTOCOL))),
    ]

    @Test(.tls, arguments: cases) func aHandshakeThatMustFailIsATypedErrorOnBothSides(each: Case) throws {
        let (near, far) = try net.pair()
        let client = try TLSClient(clientConfiguration(each.client))
        let server = try TLSServer(serverConfiguration(each.server))
        let connecting = near.startTLS(as: client, serverName: each.name)
        let accepting = far.startTLS(as: server)
        let (atClient, atServer) = (try cause(of: connecting), try cause(of: accepting))
        expectEqual(atClient, each.atClient)
        expectEqual(atServer, each.atServer)
        let fault = connecting.error as? TLSError
        expect(fault?.peer == near.peerAddress && fault?.reason.isEmpty == false)
        // It stays failed.
        expect(try error(of: near.write("x")) as? TLSError == fault)
        hang(near.close())
        hang(far.close())
    }

    @Test(
        .tls,
        arguments: [
            ("GET / HTTP/1.1\r\n\r\n", SSL_R_HTTP_REQUEST), ("hello, this is plain text", SSL_R_WRONG_VERSION_NUMBER),
        ]) func plainTextIsATypedErrorForTheServer(text: String, reason: CInt) throws
    {
        let (near, far) = try net.pair()
        let accepting = far.startTLS(as: try TLSServer(serverConfiguration()))
        try hang(near.write(text), timeout: patience)
        expectEqual(try cause(of: accepting), .handshakeOrRecord(reason: Int(reason)))
        far.close()
        // An alert, or nothing, and the end.
        expect(try hang(readToEnd(near), timeout: patience).count <= 7)
        hang(near.close())
    }

    @Test(.tls) func plainTextIsATypedErrorForTheClient() throws {
        let (near, far) = try net.pair()
        let connecting = near.startTLS(as: try TLSClient(clientConfiguration()), serverName: "localhost")
        try hang(far.write("220 mail.example.org ESMTP\r\n"), timeout: patience)
        expectEqual(try cause(of: connecting), .handshakeOrRecord(reason: Int(SSL_R_WRONG_VERSION_NUMBER)))
        near.abort()
        far.abort()
    }

    // MARK: Clients' certificates

    @Test(.tls) func aClientWithoutACertificateIsRefusedWhereOneIsRequired() throws {
        for version in TLSVersion.allCases {
            let (near, far) = try net.pair()
            let server = try TLSServer(
                serverConfiguration {
                    $0.clientCertificates = .required
                    $0.trustRoots = .pem(Certificates.shared.authority)
                })
            let client = try TLSClient(clientConfiguration { $0.maximumVersion = version })
            let connecting = near.startTLS(as: client, serverName: "localhost")
            let accepting = far.startTLS(as: server)
            expectEqual(try cause(of: accepting), .certificate(.missing))
            // In TLS 1.3 the client's handshake has already ended.
            let refusal = version == .tls13 ? connecting.then { $0.readLine() }.asVoid() : connecting.asVoid()
            expectEqual(try cause(of: refusal), .alert(version == .tls13 ? 116 : 40))
            near.abort()
            far.abort()
        }
    }

    @Test(.tls) func aClientsCertificateOfAStrangerIsRefusedAlsoWhereItIsOptional() throws {
        let (near, far) = try net.pair()
        let server = try TLSServer(
            serverConfiguration {
                $0.clientCertificates = .optional
                $0.trustRoots = .pem(Certificates.shared.stranger)
            })
        let client = try TLSClient(clientConfiguration { $0.identity = Certificates.shared.client })
        let connecting = near.startTLS(as: client, serverName: "localhost")
        expectEqual(try cause(of: far.startTLS(as: server)), .certificate(.unknownAuthority))
        expectEqual(try cause(of: connecting.then { $0.readLine() }), .alert(48))
        near.abort()
        far.abort()
    }

    // MARK: Cut off, garbled, slow

    @Test(.tls(turns: .max), arguments: TLSVersion.allCases) func aHandshakeThatIsCutAtEachByteIsTruncated(
        version: TLSVersion
    ) throws {
        let client = clientConfiguration { $0.maximumVersion = version }
        let whole = try net.relayed(client)
        whole.relay.start()
        _ = try hang(when(fulfilled: [whole.clientReady, whole.serverReady]), timeout: patience)
        let (toServer, toClient) = (whole.relay.toServer, whole.relay.toClient)
        whole.abort()
        // A signature varies by a byte or two in length, so the last bytes are left out. One version has the even places, and
        // the other the odd ones.
        let first = version == .allCases.first ? 0 : 1
        for count in stride(from: first, to: toServer - 8, by: 2) {
            try expectTruncation(client, net, isServerCut: true, count)
        }
        // All before the end of the client's part; the server then still sends tickets.
        for count in stride(from: first, to: min(toClient, 700) - 8, by: 2) {
            try expectTruncation(client, net, isServerCut: false, count)
        }
    }

    private func expectTruncation(
        _ configuration: TLSConfiguration, _ net: Network, isServerCut: Bool, _ count: Int
    ) throws {
        let cut = try net.relayed(configuration)
        if isServerCut { cut.relay.serverLimit = count } else { cut.relay.clientLimit = count }
        if count > 0 {
            cut.relay.start()
        } else {
            cut.relay.abort()
        }
        let found = try error(of: isServerCut ? cut.serverReady : cut.clientReady)
        let isTruncation = found as? ConnectionFilterError == .truncated
        // From a socket that is closed with unread bytes.
        let isReset = count == 0 && found is SystemError
        expect(isTruncation || isReset, "cut at \(count): \(String(describing: found))")
        cut.abort()
    }

    @Test(.tls, arguments: [true, false]) func garbageAfterTheHandshakeIsATypedErrorAndAnAlert(atServer: Bool)
        throws
    {
        let ends = try net.relayed()
        ends.relay.start()
        _ = try hang(when(fulfilled: [ends.clientReady, ends.serverReady]), timeout: patience)
        let (victim, other) = atServer ? (ends.server, ends.client) : (ends.client, ends.server)
        try hang(other.write("before"), timeout: patience)
        expectEqual(try hang(victim.read(exactly: 6), timeout: patience), Array("before".utf8))
        let line = victim.readLine()
        let source = atServer ? ends.relay.nearServer : ends.relay.nearClient
        // A record of application data with invalid content.
        try hang(source.write([23, 3, 3, 0, 32] + [UInt8](repeating: 7, count: 32)), timeout: patience)
        let reason = SSL_R_DECRYPTION_FAILED_OR_BAD_RECORD_MAC
        expectEqual(try cause(of: line), .handshakeOrRecord(reason: Int(reason)))
        expectEqual(try cause(of: other.readLine()), .alert(20))
        ends.abort()
    }

    @Test(.tls(.virtual), arguments: [true, false]) func aByteASecondEndsWithTheTimeLimitOfTheHandshake(
        atServer: Bool
    ) throws {
        let begin = net.loop.now
        let ends = try net.relayed(
            clientConfiguration { $0.handshakeTimeout = atServer ? nil : .seconds(10) },
            serverConfiguration { $0.handshakeTimeout = atServer ? .seconds(10) : nil })
        ends.relay.trickle(every: .seconds(1))
        let slow = atServer ? ends.serverReady : ends.clientReady
        expect(try error(of: slow) as? PromiseError == .timedOut)
        expectEqual(begin.duration(to: net.loop.now), .seconds(10))
        ends.abort()
    }

    @Test(.tls(.virtual, turns: 40_000)) func aByteAtATimeIsEnoughForAHandshakeAndForRecords() throws {
        let ends = try net.relayed(
            clientConfiguration { $0.handshakeTimeout = nil }, serverConfiguration { $0.handshakeTimeout = nil })
        ends.relay.trickle(every: .milliseconds(1))
        _ = try hang(when(fulfilled: [ends.clientReady, ends.serverReady]))
        ends.client.write("slowly").cauterize()
        expectEqual(try hang(ends.server.read(exactly: 6)), Array("slowly".utf8))
        ends.server.write("too").cauterize()
        expectEqual(try hang(ends.client.read(exactly: 3)), Array("too".utf8))
        ends.abort()
    }
}
#endif
