#if TLS
/// The time that a test waits for an expected event. Only a failing test waits that long.
let patience: Duration = .seconds(60)

/// The time of a test's loop.
enum TestTime { case real, virtual }

extension Trait where Self == Around {
    /// Each test has a loop of its own, and `net`; see `withNetwork`.
    static var tls: Self { tls() }
    static func tls(_ time: TestTime = .real, turns: Int = 400) -> Self {
        .checking { body in complaints(time == .virtual ? VirtualClock() : nil, turns) { _ in body() } }
    }
}

/// The network of the test.
var net: Network { Network(loop: .current) }

/// Gives `body` its own loop, which may not turn more often than `limit`. All OpenSSL objects that it creates must be
/// released afterwards.
func withNetwork(
    turns limit: Int = 400, at place: SourceLocation = #_sourceLocation, _ body: (Network) throws -> Void
) throws {
    for complaint in try complaints(nil, limit, body) {
        Issue.record(Comment(rawValue: complaint), sourceLocation: place)
    }
}

private func complaints(_ clock: VirtualClock?, _ limit: Int, _ body: (Network) throws -> Void) rethrows -> [String] {
    // Created before the loop: it runs processes on its own loop.
    _ = Certificates.shared
    let objects = OpenSSLObjects()
    var complaints: [String] = []
    try objects.counting {
        try EventLoop.withLoop(clock: clock) { loop in
            try body(Network(loop: loop))
            if loop.metrics.turns > limit { complaints.append("the loop spins") }
        }
    }
    if objects.remaining != [:] { complaints.append("objects of OpenSSL leak: \(objects.remaining)") }
    return complaints
}

/// The environment of a test of streams.
struct Network {
    let loop: EventLoop

    /// Lets pass everything that happens within `time`: to check that something does not.
    func settle(_ time: Duration = .milliseconds(20)) { hang(after(time)) }

    /// The number of turns that the loop makes for `body`.
    func turns(_ body: () throws -> Void) rethrows -> Int {
        let before = loop.metrics.turns
        try body()
        return loop.metrics.turns - before
    }

    /// Both ends of a TCP connection on this loop.
    func pair() throws -> (client: Connection, server: Connection) {
        let listener = try Listener.bind("127.0.0.1:0")
        let client = try hang(connect(to: listener.localAddress), timeout: patience)
        let server = try hang(listener.accept(), timeout: patience)
        listener.close()
        return (client, server)
    }

    /// Both ends of a TLS connection on this loop.
    func tls(_ change: (inout TLSConfiguration) -> Void = { _ in }) throws -> (client: Connection, server: Connection) {
        try tls(try TLSClient(clientConfiguration(change)), try TLSServer(serverConfiguration(change)))
    }

    func tls(_ client: TLSClient, _ server: TLSServer) throws -> (client: Connection, server: Connection) {
        let ends = try handshake(client, server)
        _ = try hang(when(fulfilled: [ends.clientReady, ends.serverReady]), timeout: patience)
        return (ends.client, ends.server)
    }

    /// Both ends of a connection whose handshakes have begun.
    func handshake(
        for name: String? = Certificates.serverName, _ client: TLSClient, _ server: TLSServer
    ) throws -> Handshake {
        let (near, far) = try pair()
        return Handshake(
            client: near, server: far, clientReady: near.startTLS(as: client, serverName: name),
            serverReady: far.startTLS(as: server))
    }

    /// Both ends of a connection through a relay, whose handshakes have begun.
    func relayed(
        _ client: TLSConfiguration = clientConfiguration(), _ server: TLSConfiguration = serverConfiguration()
    ) throws -> Relayed {
        let (near, far) = (try Connection.pair(), try Connection.pair())
        let relay = Relay(nearClient: near.1, nearServer: far.0)
        return Relayed(
            client: near.0, server: far.1,
            clientReady: near.0.startTLS(as: try TLSClient(client), serverName: Certificates.serverName),
            serverReady: far.1.startTLS(as: try TLSServer(server)), relay: relay)
    }

    /// The same after the handshakes.
    func relayedTLS(_ client: TLSConfiguration = clientConfiguration()) throws -> Relayed {
        let ends = try relayed(client)
        ends.relay.start()
        _ = try hang(when(fulfilled: [ends.clientReady, ends.serverReady]), timeout: patience)
        return ends
    }

    /// A connection that has resumed the session of another.
    func resumed() throws -> (client: Connection, server: Connection) {
        let client = try TLSClient(clientConfiguration())
        let server = try TLSServer(serverConfiguration())
        try converse(client, server, isResumed: false)
        let resumed = try tls(client, server)
        expect(resumed.client.hasResumedTLSSession && resumed.server.hasResumedTLSSession)
        return resumed
    }

    /// Connects, exchanges a byte, after which the client has its tickets, and ends.
    func converse(_ client: TLSClient, _ server: TLSServer, isResumed: Bool) throws {
        let (near, far) = try tls(client, server)
        expect(near.hasResumedTLSSession == isResumed && far.hasResumedTLSSession == isResumed)
        expect(near.peerCertificate != nil, "that of the first handshake")
        try hang(far.write("x"), timeout: patience)
        expectEqual(try hang(near.receive(), timeout: patience), [0x78])
        near.shutdownWrite().cauterize()
        expectEqual(try hang(far.read(), timeout: patience), .end)
        hang(far.close())
        hang(near.close())
    }
}

/// Two ends of a TLS connection.
struct Handshake {
    let client: Connection
    let server: Connection
    let clientReady: Promise<Connection>
    let serverReady: Promise<Connection>
}

/// The settings of a client that trusts the test authority.
func clientConfiguration(_ change: (inout TLSConfiguration) -> Void = { _ in }) -> TLSConfiguration {
    var configuration = TLSConfiguration()
    configuration.trustRoots = .pem(Certificates.shared.authority)
    change(&configuration)
    return configuration
}

/// The settings of a server whose certificate the test authority has signed.
func serverConfiguration(_ change: (inout TLSConfiguration) -> Void = { _ in }) -> TLSConfiguration {
    var configuration = TLSConfiguration(identity: Certificates.shared.server)
    change(&configuration)
    return configuration
}

/// Everything until the peer ends.
func readToEnd(_ connection: Connection) -> Promise<[UInt8]> {
    var all: [UInt8] = []
    return connection.forEachChunk { chunk in chunk.withUnsafeBytes { all += $0 } }.map { all }
}

/// The code of the `SystemError` with which a promise was rejected.
func code<T>(_ promise: Promise<T>) -> CInt? { (promise.error as? SystemError)?.code }

/// That code, once the promise has been rejected.
func rejection<T>(of promise: Promise<T>) throws -> CInt? {
    try hang(promise.asVoid().recover(policy: .allErrors) { _ in .value }, timeout: patience)
    return code(promise)
}

func failed(_ code: CInt) -> ReadOutcome { .failed(SystemError(.receive, code)) }

/// The error with which a promise is rejected.
func error<T>(of promise: Promise<T>) throws -> (any Error)? {
    try hang(promise.asVoid().recover(policy: .allErrors) { _ in .value }, timeout: patience)
    return promise.error
}

/// The cause of the `TLSError` with which a promise is rejected.
func cause<T>(of promise: Promise<T>) throws -> TLSError.Cause? { (try error(of: promise) as? TLSError)?.cause }
#endif
