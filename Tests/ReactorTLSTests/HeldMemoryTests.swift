#if TLS
import COpenSSL

@testable import ReactorTLS

/// Memory that TLS holds for a peer, before authentication and afterwards.
struct HeldMemoryTests {
    private func filter(of connection: Connection) throws -> TLSFilter {
        try #require(connection.installedFilter as? TLSFilter)
    }

    /// The first message of a client, as a record.
    private func hello() throws -> [UInt8] {
        try EventLoop.withLoop { _ in
            let (near, far) = try Connection.pair()
            let ready = near.startTLS(as: try TLSClient(clientConfiguration()), serverName: Certificates.serverName)
            let bytes = try hang(far.receive(), timeout: patience)
            ready.cancel()
            near.abort()
            far.abort()
            return bytes
        }
    }

    /// Splits the message of a record into records of at most `size` bytes.
    private func split(_ hello: [UInt8], by size: Int) -> [UInt8] {
        let message = Array(hello[5...])
        return stride(from: 0, to: message.count, by: size).flatMap { start in
            let part = message[start..<min(start + size, message.count)]
            return hello[..<3] + [UInt8(part.count >> 8), UInt8(part.count & 255)] + part
        }
    }

    @Test(.tls) func aSilentClientTakesNothing() throws {
        let (near, far) = try net.pair()
        let ready = far.startTLS(as: try TLSServer(serverConfiguration()))
        let filter = try filter(of: far)
        expect(filter.ssl == nil && filter.heldBytes == 0 && !filter.isInsideRecord)
        // The results of a handshake are not known.
        expect(far.peerCertificate == nil && far.tlsVersion == nil && far.tlsCipher == nil)
        expect(far.negotiatedProtocol == nil && far.requestedServerName == nil && !far.hasResumedTLSSession)
        near.close()
        #expect(throws: ConnectionFilterError.truncated) { try hang(ready, timeout: patience) }
        far.close()
    }

    /// A peer that announces a large message takes only the memory of what it has sent.
    @Test(.tls) func anAnnouncementTakesNoMemory() throws {
        let (near, far) = try net.pair()
        let ready = far.startTLS(as: try TLSServer(serverConfiguration()))
        let filter = try filter(of: far)
        try hang(
            near.write([22, 3, 1, 0, 38, 1, 1, 0xFF, 0, 3, 3] + [UInt8](repeating: 7, count: 32)), timeout: patience
        )
        try net.loop.run(until: { far.bytesReceived == 43 })
        expect(filter.ssl == nil && filter.heldBytes >= 43 && filter.heldBytes < 200 && filter.isInsideRecord)
        near.close()
        #expect(throws: ConnectionFilterError.truncated) { try hang(ready, timeout: patience) }
        far.close()
    }

    /// The handshake succeeds however the hello arrives.
    @Test(.tls(turns: 20_000), arguments: [1, 3, 4, 5, 100, 16_384], [1, 7, 100_000])
    func aHelloArrivesInRecordsAndPieces(record: Int, piece: Int) throws {
        let (near, middle) = try net.pair()
        let (other, far) = try net.pair()
        let ready = [
            near.startTLS(as: try TLSClient(clientConfiguration()), serverName: Certificates.serverName).asVoid(),
            far.startTLS(as: try TLSServer(serverConfiguration())).asVoid(),
        ]
        let bytes = split(try hang(middle.receive(), timeout: patience), by: record)
        let filter = try filter(of: far)
        for start in stride(from: 0, to: bytes.count - 1, by: piece) {
            let part = Array(bytes[start..<min(start + piece, bytes.count - 1)])
            try hang(other.write(part), timeout: patience)
            let count = start + part.count
            try net.loop.run(until: { far.bytesReceived == count })
            expect(filter.ssl == nil && filter.heldBytes >= count)
        }
        try hang(other.write([bytes[bytes.count - 1]]), timeout: patience)
        try net.loop.run(until: { far.bytesReceived == bytes.count })
        expect(filter.ssl != nil)
        let pipes = [pipe(from: middle, to: other), pipe(from: other, to: middle)]
        try hang(when(fulfilled: ready), timeout: patience)
        expect(filter.heldBytes > 0 && filter.heldBytes < 32 << 10)
        for pipe in pipes { pipe.cancel() }
        for connection in [near, middle, other, far] { connection.abort() }
    }

    /// Anything but a hello is refused at once, by OpenSSL.
    @Test(
        .tls,
        arguments: [
            Array("GET / HTTP/1.1\r\n".utf8), [22, 2], [22, 3, 1, 0, 0], [22, 3, 1, 0x40, 1], [22, 3, 1, 0, 1, 2],
            [22, 3, 1, 0, 4, 1, 2, 1, 0x45], [0x80, 0x2E, 1, 3, 1],
        ] as [[UInt8]])
    func whatIsNoHelloIsRefused(bytes: [UInt8]) throws {
        let (near, far) = try net.pair()
        let ready = far.startTLS(as: try TLSServer(serverConfiguration()))
        // OpenSSL refuses some of them only when the record is complete.
        try hang(near.write(bytes + [UInt8](repeating: 0, count: 20_000)), timeout: patience)
        guard case .handshakeOrRecord? = try cause(of: ready) else {
            Issue.record("\(ready)")
            return
        }
        near.abort()
        far.close()
    }

    /// Clients that begin a handshake and then stop are together bounded by `memoryLimit`.
    @Test(.tls(turns: 20_000), arguments: [false, true]) func countsInTheBudgetOfAListener(sendsHello: Bool) throws {
        let hello = try hello()
        let listener = try Listener.bind("127.0.0.1:0")
        let server = try TLSServer(serverConfiguration())
        let bytes = sendsHello ? hello : [22, 3, 1, 0x40, 0, 1, 1, 0, 0] + [UInt8](repeating: 7, count: 15_000)
        var sessions: [Connection] = []
        let served = listener.serve(ServeOptions(memoryLimit: 100_000)) { connection in
            sessions.append(connection)
            return connection.startTLS(as: server).then { readToEnd($0) }.asVoid()
        }
        var clients: [Connection] = []
        for number in 0..<10 {
            let client = try hang(connect(to: listener.localAddress), timeout: patience)
            clients.append(client)
            client.write(bytes).catch(policy: .allErrors) { _ in }
            try net.loop.run(until: {
                number < sessions.count && (sessions[number].isClosed || sessions[number].bytesReceived == bytes.count)
            })
            try net.loop.turn(.poll)
        }
        expect(listener.evictedConnections >= 4)
        sessions = []
        for client in clients { client.abort() }
        listener.drain(deadline: .zero)
        try hang(served, timeout: patience)
    }
}
#endif
