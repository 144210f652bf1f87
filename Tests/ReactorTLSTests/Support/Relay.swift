#if TLS
/// Two ends of a TLS connection, and the relay between them.
struct Relayed {
    let client: Connection
    let server: Connection
    let clientReady: Promise<Connection>
    let serverReady: Promise<Connection>
    let relay: Relay

    func abort() {
        client.abort()
        server.abort()
        relay.abort()
    }
}

/// Passes bytes between two connections, counts them, and can cut them off or add to them.
final class Relay {
    let nearClient: Connection
    let nearServer: Connection
    /// Bytes forwarded to the server and to the client.
    private(set) var toServer = 0
    private(set) var toClient = 0
    /// The direction ends after this many bytes.
    var serverLimit = Int.max
    var clientLimit = Int.max

    init(nearClient: Connection, nearServer: Connection) {
        self.nearClient = nearClient
        self.nearServer = nearServer
    }

    /// Forwards everything that arrives, until both sides have ended or a limit is reached.
    func start() {
        nearClient.forEachChunk { chunk -> Promise<Void> in self.pass(chunk, toServer: true) }
            .ensure { self.nearServer.shutdownWrite().cauterizeAll() }.cauterizeAll()
        nearServer.forEachChunk { chunk -> Promise<Void> in self.pass(chunk, toServer: false) }
            .ensure { self.nearClient.shutdownWrite().cauterizeAll() }.cauterizeAll()
    }

    private func pass(_ chunk: RawSpan, toServer: Bool) -> Promise<Void> {
        let limit = toServer ? serverLimit - self.toServer : clientLimit - toClient
        let bytes = chunk.withUnsafeBytes { Array($0.prefix(limit)) }
        if toServer { self.toServer += bytes.count } else { toClient += bytes.count }
        let write = (toServer ? nearServer : nearClient).write(bytes)
        return chunk.byteCount >= limit ? write.done { throw StopReading() } : write
    }

    /// Forwards one byte per period, in both directions.
    func trickle(every period: Duration) {
        trickle(nearClient, nearServer, period)
        trickle(nearServer, nearClient, period)
    }

    private func trickle(_ source: Connection, _ target: Connection, _ period: Duration) {
        source.receive(upTo: 1).done { byte in
            if byte.isEmpty { return target.shutdownWrite().cauterizeAll() }
            after(period).then { target.write(byte) }.done { self.trickle(source, target, period) }.cauterizeAll()
        }.cauterizeAll()
    }

    func abort() {
        nearClient.abort()
        nearServer.abort()
    }
}

extension Promise where T == Void {
    /// Ignores errors, which the ends of a connection report.
    func cauterizeAll() { self.catch(policy: .allErrors) { _ in } }
}
#endif
