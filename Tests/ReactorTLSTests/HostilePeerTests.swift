#if TLS
import COpenSSL

@testable import PromisesTestSupport
@testable import ReactorTLS

/// Peers that speak TLS and abuse it.
struct HostilePeerTests {
    // MARK: Floods

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
        client.abort()
        server.abort()
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
        client.abort()
        server.abort()
    }

    private func updateKeys(of connection: Connection, times: Int, isAnswered: Bool) throws {
        let filter = try #require(connection.installedFilter as? TLSFilter)
        for _ in 0..<times {
            SSL_key_update(filter.ssl, isAnswered ? SSL_KEY_UPDATE_REQUESTED : SSL_KEY_UPDATE_NOT_REQUESTED)
            try #require(SSL_do_handshake(filter.ssl) == 1)
        }
    }

    @Test(.tls, arguments: TLSVersion.allCases) func recordsOfOneByteAreReadInOrder(version: TLSVersion) throws {
        let (client, server) = try net.tls { $0.maximumVersion = version }
        let bytes = pattern(3000)
        for byte in bytes { client.write([byte]).cauterizeAll() }
        expectEqual(try hang(server.read(exactly: bytes.count), timeout: patience), bytes)
        client.abort()
        server.abort()
    }

    // MARK: Sizes

    @Test(.tls) func aChainOfMoreThan100KilobytesIsRefused() throws {
        let (near, far) = try net.pair()
        let shared = Certificates.shared
        let chain = shared.serverChain + (0..<500).flatMap { _ in shared.authority }
        let identity = try TLSIdentity(certificateChain: chain, privateKey: shared.serverKey)
        let server = try TLSServer(serverConfiguration { $0.identity = identity })
        let connecting = near.startTLS(as: try TLSClient(clientConfiguration()), serverName: "localhost")
        let accepting = far.startTLS(as: server)
        let reason = Int(SSL_R_EXCESSIVE_MESSAGE_SIZE)
        let (atClient, atServer) = (try cause(of: connecting), try cause(of: accepting))
        expectEqual(atClient, .handshakeOrRecord(reason: reason))
        expectEqual(atServer, .alert(47))
        near.abort()
        far.abort()
    }

    @Test(.tls) func aPeerThatNeverReadsFillsNoMoreThanTheQueue() throws {
        let (client, server) = try net.tls()
        server.writeQueueLimit = 1 << 20
        let part = pattern(256 << 10)
        var refused: Promise<Void>?
        var writes: [Promise<Void>] = []
        while refused == nil && writes.count < 1000 {
            let write = server.write(part)
            if code(write) == ENOBUFS { refused = write } else { writes.append(write) }
        }
        expect(refused != nil)
        // The last write that was taken, and the overhead of TLS.
        expect(server.queuedBytes < server.writeQueueLimit + part.count * 5 / 4)
        server.abort()
        for write in writes { write.cauterizeAll() }
        expect(code(try #require(writes.last)) != nil)
        client.abort()
    }

    // MARK: Ends

    @Test(.tls) func anAnswerThatIsCutOffIsNotTakenForAWholeOne() throws {
        for isReset in [false, true] {
            let ends = try net.relayed()
            ends.relay.start()
            _ = try hang(when(fulfilled: [ends.clientReady, ends.serverReady]), timeout: patience)
            var received: [UInt8] = []
            let answer = ends.client.forEachChunk { chunk in chunk.withUnsafeBytes { received += $0 } }
            try hang(ends.server.write("the first half"), timeout: patience)
            try net.loop.run(until: { received.count == 14 })
            if isReset {
                ends.relay.nearClient.abort()
            } else {
                ends.relay.nearClient.shutdownWrite().cauterizeAll()
            }
            let found = try error(of: answer)
            expect(found as? ConnectionFilterError == .truncated || (isReset && code(answer) == ECONNRESET))
            expectEqual(received, Array("the first half".utf8))
            ends.abort()
        }
    }

    @Test(.tls(turns: .max)) func handshakesThatAreResetReleaseEverything() throws {
        let rounds = 200
        let client = try TLSClient(clientConfiguration())
        let server = try TLSServer(serverConfiguration())
        let objects = OpenSSLObjects()
        try objects.counting {
            for round in 0..<rounds {
                let (near, far) = try net.pair()
                let connecting = near.startTLS(as: client, serverName: "localhost")
                let accepting = far.startTLS(as: server)
                // After nothing, the client's first message, the server's, and so on.
                for _ in 0..<round % 4 { try net.loop.turn(.poll) }
                if round % 8 < 4 { near.abort() } else { far.abort() }
                _ = try error(of: connecting)
                _ = try error(of: accepting)
                near.abort()
                far.abort()
            }
        }
        expect(objects.createdCount >= rounds * 2)
        expectEqual(objects.remaining.filter { $0.key != "SSL_SESSION" && $0.key != "X509" }, [:])
    }
}
#endif
