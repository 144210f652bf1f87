import Glibc
import PromisesTestSupport

/// Gives `body` its own loop and checks it: at its end every descriptor that it opened must be closed, none closed
/// twice or used after that, and it must not have turned more often than `limit`.
func withNetwork(
    clock: VirtualClock? = nil, turns limit: Int = 400, at place: SourceLocation = #_sourceLocation,
    _ body: (Network) throws -> Void
) throws {
    let ledger = Ledger()
    defer { for complaint in ledger.complaints { Issue.record(Comment(rawValue: complaint), sourceLocation: place) } }
    try EventLoop.withLoop(clock: clock, syscalls: ledger.syscalls()) { loop in
        try Fixture(loop, ledger, clock).use { try body($0.network) }
        ledger.check(loop, turns: limit)
    }
}

/// As `withNetwork`, with a connection, which is aborted in the end, and its peer.
/// - Parameter make: makes both, by default without a filter.
func withPair(
    clock: VirtualClock? = nil, turns limit: Int = 400, at place: SourceLocation = #_sourceLocation,
    madeBy make: (Network) throws -> (Connection, Peer) = { try $0.pair() },
    _ body: (Network, Connection, Peer) throws -> Void
) throws {
    try withNetwork(clock: clock, turns: limit, at: place) { net in
        let (connection, peer) = try make(net)
        try body(net, connection, peer)
        connection.abort()
    }
}

/// As `withNetwork`, with a listener on TCP.
func withListener(
    clock: VirtualClock? = nil, turns limit: Int = 400, at place: SourceLocation = #_sourceLocation,
    _ body: (Network, Listener) throws -> Void
) throws {
    try withNetwork(clock: clock, turns: limit, at: place) { net in try body(net, try net.listen()) }
}

/// As `withNetwork`, with both ends of a connection.
func withConnections(
    clock: VirtualClock? = nil, turns limit: Int = 400, at place: SourceLocation = #_sourceLocation,
    _ body: (Network, Connection, Connection) throws -> Void
) throws {
    try withNetwork(clock: clock, turns: limit, at: place) { net in
        let (one, other) = try Connection.pair()
        try body(net, one, other)
    }
}

/// The environment of a test of sockets.
struct Network {
    let loop: EventLoop
    let ledger: Ledger
    let virtualClock: VirtualClock?

    /// The clock of a test in virtual time.
    var clock: VirtualClock { virtualClock! }

    /// The calls that the loop really makes; replace one to inject a fault.
    var kernel: Syscalls {
        get { ledger.kernel }
        nonmutating set { ledger.kernel = newValue }
    }

    func listen(_ address: String = "127.0.0.1:0", backlog: Int = 4096) throws -> Listener {
        try Listener.bind(address, backlog: backlog)
    }

    /// A connection of the loop, and its other end, a peer outside of the loop.
    func pair(receiveBuffer: CInt? = nil) throws -> (Connection, Peer) {
        let listener = try listen()
        let peer = try Peer(to: listener.localAddress, receiveBuffer: receiveBuffer)
        let connection = try accept(from: listener)
        listener.close()
        return (connection, peer)
    }

    /// The next connection of a listener at which a client has already arrived.
    func accept(from listener: Listener) throws -> Connection {
        try hang(listener.accept(), timeout: patience)
    }

    /// Sends bytes from the peer of the first accepted connection, and returns when they have arrived there.
    func deliver(_ bytes: [UInt8], from peer: Peer, place: SourceLocation = #_sourceLocation) throws {
        try peer.send(bytes)
        awaitArrival(of: POLLIN, at: ledger.accepted[0], place: place)
    }

    func deliver(_ text: String, from peer: Peer, place: SourceLocation = #_sourceLocation) throws {
        try deliver(Array(text.utf8), from: peer, place: place)
    }

    /// Lets pass everything that happens within `time`: to check that something does not.
    func settle(_ time: Duration = .milliseconds(20)) { hang(after(time)) }

    func calls(_ call: SystemCall) -> Int { loop.metrics.systemCalls[call] ?? 0 }

    /// The number of turns that the loop makes for `body`.
    func turns(_ body: () throws -> Void) rethrows -> Int {
        let before = loop.metrics.turns
        try body()
        return loop.metrics.turns - before
    }
}

extension Listener {
    /// Closes the clients and then the listener, and returns when the last of its connections has ended.
    func end(_ served: Promise<DrainResult>, closing clients: [Peer] = []) throws {
        for client in clients { client.close() }
        close()
        try hang(served, timeout: patience)
    }
}

/// Returns when poll(2) reports any of `events` for `fd`: an action of the test's side has arrived.
func awaitArrival(of events: Int32, at fd: CInt, place: SourceLocation = #_sourceLocation) {
    var entry = pollfd(fd: fd, events: Int16(events), revents: 0)
    #expect(retrying { Int(poll(&entry, 1, 60_000)) } == 1, "nothing arrives", sourceLocation: place)
}

/// Everything until the peer ends.
func readToEnd(_ connection: Connection, upTo limit: Int = 65536) -> Promise<[UInt8]> {
    func more(_ bytes: [UInt8]) -> Promise<[UInt8]> {
        connection.receive(upTo: limit).then { $0.isEmpty ? .value(bytes) : more(bytes + $0) }
    }
    return more([])
}

/// The code of the `SystemError` with which a promise was rejected.
func code<T>(_ promise: Promise<T>) -> CInt? { (promise.error as? SystemError)?.code }

/// That code, once the promise has been rejected.
func rejection<T>(of promise: Promise<T>) throws -> CInt? {
    try hang(promise.asVoid().recover(policy: .allErrors) { _ in .value }, timeout: patience)
    return code(promise)
}

func failed(_ code: CInt) -> ReadOutcome { .failed(SystemError(.receive, code)) }

/// A handler for a listener that echoes everything up to the end.
func echo(_ connection: Connection) -> Promise<Void> {
    connection.receive().then { bytes -> Promise<Void> in
        bytes.isEmpty ? .value : connection.write(bytes).then { echo(connection) }
    }
}
