#if TLS
import COpenSSL

@testable import ReactorTLS

/// Peers that break the protocol, and certificates that must not be accepted: each ends with its error, on both sides.
struct BadPeerTests {
    enum Flaw: CaseIterable {
        case anotherHost, expired, selfSigned, unknownAuthority, chainOf100Kilobytes
        case versionTooLow, noCommonCipher, noCommonProtocol
        case clientWithoutCertificate, clientWithoutCertificateIn12, clientOfAStranger
    }

    @Test(.tls, arguments: Flaw.allCases) func aHandshakeThatMustFailIsATypedErrorOnBothSides(_ flaw: Flaw) throws {
        var (client, server) = (clientConfiguration(), serverConfiguration())
        let shared = Certificates.shared
        let expected: (atClient: TLSError.Cause, atServer: TLSError.Cause)
        func handshakeOrRecord(_ reason: CInt) -> TLSError.Cause { .handshakeOrRecord(reason: Int(reason)) }
        switch flaw {
        case .anotherHost:
            server.identity = shared.other
            expected = (.certificate(.wrongName), .alert(42))
        case .expired:
            server.identity = shared.expired
            expected = (.certificate(.expired), .alert(45))
        case .selfSigned:
            server.identity = shared.selfSigned
            expected = (.certificate(.selfSigned), .alert(48))
        case .unknownAuthority:
            client.trustRoots = .pem(shared.stranger)
            expected = (.certificate(.unknownAuthority), .alert(48))
        case .chainOf100Kilobytes:
            let chain = shared.serverChain + (0..<500).flatMap { _ in shared.authority }
            server.identity = try TLSIdentity(certificateChain: chain, privateKey: shared.serverKey)
            expected = (handshakeOrRecord(SSL_R_EXCESSIVE_MESSAGE_SIZE), .alert(47))
        case .versionTooLow:
            (client.maximumVersion, server.minimumVersion) = (.tls12, .tls13)
            expected = (.alert(70), handshakeOrRecord(SSL_R_UNSUPPORTED_PROTOCOL))
        case .noCommonCipher:
            // One without AEAD, which servers do not have by default.
            (client.maximumVersion, client.ciphers) = (.tls12, "ECDHE-ECDSA-AES128-SHA")
            expected = (.alert(40), handshakeOrRecord(SSL_R_NO_SHARED_CIPHER))
        case .noCommonProtocol:
            (client.applicationProtocols, server.applicationProtocols) = (["h2"], ["http/1.1"])
            expected = (.alert(120), handshakeOrRecord(SSL_R_NO_APPLICATION_PROTOCOL))
        case .clientWithoutCertificate, .clientWithoutCertificateIn12:
            let isOld = flaw == .clientWithoutCertificateIn12
            if isOld { client.maximumVersion = .tls12 }
            (server.clientCertificates, server.trustRoots) = (.required, .pem(shared.authority))
            expected = (.alert(isOld ? 40 : 116), .certificate(.missing))
        case .clientOfAStranger:
            client.identity = shared.client
            (server.clientCertificates, server.trustRoots) = (.optional, .pem(shared.stranger))
            expected = (.alert(48), .certificate(.unknownAuthority))
        }
        let ends = try net.handshake(try TLSClient(client), try TLSServer(server))
        // In TLS 1.3 the client's handshake ends before the server has seen its certificate.
        let line = ends.clientReady.then { $0.readLine() }
        let (atClient, atServer) = (try cause(of: line), try cause(of: ends.serverReady))
        expectEqual(atClient, expected.atClient)
        expectEqual(atServer, expected.atServer)
        let (fault, ofServer) = (line.error as? TLSError, ends.serverReady.error as? TLSError)
        expect(fault?.peer == ends.client.peerAddress && fault?.reason.isEmpty == false)
        expect(ofServer?.peer == ends.server.peerAddress && ofServer?.reason.isEmpty == false)
        // It stays failed.
        expect(try error(of: ends.client.write("x")) as? TLSError == fault)
    }

    enum Send: CaseIterable { case atOnce, queued, ofTwo }

    /// In TLS 1.3 the client sends before the server has seen its certificate, so the alert meets a failed send.
    @Test(.tls, arguments: Send.allCases, [true, false]) func anAlertSurvivesAFailedSend(_ form: Send, _ reads: Bool)
        throws
    {
        var table = Syscalls()
        var code = 0
        let (send, sendVector) = (table.send, table.sendVector)
        table.send = { code == 0 ? send($0, $1, $2) : -code }
        table.sendVector = { code == 0 ? sendVector($0, $1, $2) : -code }
        let server = serverConfiguration {
            ($0.clientCertificates, $0.trustRoots) = (.required, .pem(Certificates.shared.authority))
        }
        try EventLoop.withLoop(syscalls: table) { _ in
            let ends = try net.handshake(try TLSClient(clientConfiguration()), try TLSServer(server))
            let client = try hang(ends.clientReady, timeout: patience)
            // The alert is on its way, or has arrived.
            expectEqual(try cause(of: ends.serverReady), .certificate(.missing))
            let read = reads ? client.readLine() : nil
            code = Int(form == .queued ? EAGAIN : EPIPE)
            var writes = [client.write([UInt8](repeating: 1, count: 100_000))]
            if form != .atOnce { writes.append(client.write("more")) }
            code = Int(EPIPE)
            for write in writes { expectEqual(try cause(of: write), .alert(116)) }
            for promise in [read ?? client.readLine(), client.readLine()] {
                expectEqual(try cause(of: promise), .alert(116))
            }
            expectEqual(try cause(of: client.write("x")), .alert(116))
            code = 0
            client.abort()
            ends.server.abort()
        }
    }

    @Test(.tls) func plainTextIsATypedErrorForTheClient() throws {
        let (near, far) = try net.pair()
        let connecting = near.startTLS(as: try TLSClient(clientConfiguration()), serverName: "localhost")
        try hang(far.write("220 mail.example.org ESMTP\r\n"), timeout: patience)
        expectEqual(try cause(of: connecting), .handshakeOrRecord(reason: Int(SSL_R_WRONG_VERSION_NUMBER)))
    }

    // MARK: Cut off, garbled, slow

    @Test(.tls(turns: .max), arguments: TLSVersion.allCases) func aHandshakeThatIsCutAtEachByteIsTruncated(
        version: TLSVersion
    ) throws {
        let client = clientConfiguration { $0.maximumVersion = version }
        let whole = try net.relayedTLS(client)
        let (toServer, toClient) = (whole.relay.toServer, whole.relay.toClient)
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
        let ends = try net.relayedTLS()
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
    }

    // MARK: Key updates

    @Test(.tls, arguments: [true, false]) func aFloodOfKeyUpdatesIsAnError(atServer: Bool) throws {
        let (client, server) = try net.tls()
        let (victim, other) = atServer ? (server, client) : (client, server)
        let read = victim.read()
        // Each requests an answer. They are sent with the byte after them.
        try updateKeys(of: other, times: 2000, isAnswered: true)
        other.write("x").cauterizeAll()
        expectEqual(try hang(read, timeout: patience), failed(EPROTO))
        let reason = Int(SSL_R_TOO_MANY_KEY_UPDATES)
        expectEqual(try cause(of: victim.write("y")), .handshakeOrRecord(reason: reason))
    }

    @Test(.tls(turns: .max), arguments: [true, false]) func keysMayBeUpdatedBetweenData(isAnswered: Bool) throws {
        let (client, server) = try net.tls()
        for round in 0..<20 {
            try updateKeys(of: client, times: 32, isAnswered: isAnswered)
            client.write("\(round)\n").cauterizeAll()
            expectEqual(try hang(server.readLine(), timeout: patience), "\(round)")
            server.write("\(round)\n").cauterizeAll()
            expectEqual(try hang(client.readLine(), timeout: patience), "\(round)")
        }
    }

    private func updateKeys(of connection: Connection, times: Int, isAnswered: Bool) throws {
        let filter = try #require(connection.installedFilter as? TLSFilter)
        for _ in 0..<times {
            SSL_key_update(filter.ssl, isAnswered ? SSL_KEY_UPDATE_REQUESTED : SSL_KEY_UPDATE_NOT_REQUESTED)
            try #require(SSL_do_handshake(filter.ssl) == 1)
        }
    }
}
#endif
