import Promises
import Reactor
import ReactorIO
import ReactorLibc

/// A machine of a simulated network: an event loop, addresses, ports and Unix paths.
///
/// ```swift
/// let database = network.host("db")
/// try database.run { try Listener.bind("0.0.0.0:5432").serve { … } }
/// ```
///
/// All hosts run on the test's thread, each with its loop. Everything that `run` starts, with its later handlers,
/// belongs to the host. Use a host only on that thread.
public final class SimulatedHost {
    /// The name in the simulated name service.
    public let name: String
    let stack: HostStack
    /// The failing system calls of this host.
    public let faults: SystemFaults
    private unowned let network: VirtualNetwork
    @exclusivity(unchecked) private(set) var loop: EventLoop
    @exclusivity(unchecked) private(set) var process: SimulatedProcess
    @exclusivity(unchecked) private(set) var pausedUntil: Int64 = 0
    private var isLoopOfTest: Bool
    /// The driver's hook before each wait, and its timer for the next event of another host.
    var hook: EventLoop.Watch?
    @exclusivity(unchecked) var alarm: EventLoop.Timer?

    /// True when the host has something to do now and is not paused.
    var hasWork: Bool {
        !isPaused && (hasEvents || (loop.nextDeadline?.nanoseconds ?? .max) <= process.kernel.now)
    }
    var isPaused: Bool { pausedUntil > process.kernel.now }
    var hasEvents: Bool { loop.isReady || process.isReady }
    /// The time when the loop's wait ends if nothing happens.
    var endOfWait: Int64 { min(loop.nextDeadline?.nanoseconds ?? .max, loop.limitOfWait) }

    init(_ stack: HostStack, _ network: VirtualNetwork, process: SimulatedProcess, loop: EventLoop, isLoopOfTest: Bool)
    {
        name = stack.name
        self.stack = stack
        self.network = network
        self.process = process
        self.loop = loop
        self.isLoopOfTest = isLoopOfTest
        faults = process.faults
    }

    /// The addresses without ports: an IPv4 and an IPv6 address, unless others were given.
    public var addresses: [SocketAddress] { stack.addresses }

    /// True unless the host has crashed without a restart.
    public var isUp: Bool { stack.isUp }

    /// The number of open simulated descriptors.
    ///
    /// ```swift
    /// hang(server.run { listener.drain(deadline: .seconds(5)) })
    /// #expect(server.openDescriptors == 0)
    /// ```
    public var openDescriptors: Int { process.openFiles }

    /// Runs `body` on this host: sockets get its addresses, and handlers belong to it.
    ///
    /// `body` may call `hang`, which drives all hosts.
    /// - Parameter body: called once, inside this call.
    /// - Returns: the result of `body`.
    /// - Throws: the error from `body`. Traps if the host has crashed.
    @discardableResult
    public func run<Value>(_ body: () throws -> Value) rethrows -> Value {
        precondition(isUp, "run: the host \(name) has crashed; restart it first")
        return try loop.perform(body)
    }

    /// Ends everything on the host without notice to its peers, like a power failure.
    ///
    /// ```swift
    /// server.crash()
    /// network.run(for: .seconds(30))
    /// try server.restart { try startService() }
    /// ```
    ///
    /// Handlers are released uncalled. A peer notices when it sends: it gets a reset after a restart, or ETIMEDOUT when
    /// its kernel has repeated the bytes for 15 minutes. Files stay.
    public func crash() {
        precondition(!isLoopOfTest, "crash: the host \(name) runs the test itself")
        if !isUp { return }
        stack.lose()
        network.kernel.vanish(process)
        network.discard(self)
    }

    /// Restarts the host after a crash, with nothing running on it: `server.restart { startService() }`.
    /// - Parameter body: runs on the host.
    /// - Returns: the result of `body`.
    /// - Throws: the error of `body`.
    @discardableResult
    public func restart<Value>(_ body: () throws -> Value) rethrows -> Value {
        crash()
        stack.isUp = true
        pausedUntil = 0
        (process, loop) = network.start(stack, faults)
        network.didStart(self)
        let stranded = stack.stranded
        stack.stranded = []
        // The peer's kernel repeats unacknowledged bytes, and this kernel does not know the connection.
        for socket in stranded { network.kernel.after(.milliseconds(200)) { socket.resetDidArrive() } }
        return try run(body)
    }

    /// Pauses the host: its kernel still acknowledges data, but no code runs. `server.pause(for: .seconds(5))`.
    /// - Parameter duration: the length of the pause.
    public func pause(for duration: Duration) {
        precondition(!isLoopOfTest, "pause: the host \(name) runs the test itself")
        pausedUntil = max(pausedUntil, network.kernel.clock.now.advanced(by: duration).nanoseconds)
    }

    /// Connects a peer for raw bytes that no client library sends.
    ///
    /// ```swift
    /// try web.connect(to: "db:5432") { peer in
    ///     try peer.send("GE")
    ///     try peer.send("T / HTTP/1.1\r\n\r\n")
    ///     try peer.expect("HTTP/1.1 400 Bad Request\r\n")
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - endpoint: as for `ReactorIO.connect(to:)`.
    ///   - body: called once with the peer, then the peer is closed.
    /// - Returns: the result of `body`.
    /// - Throws: the error from `body` or `connect`.
    @discardableResult
    public func connect<Value>(to endpoint: some Endpoint, _ body: (RawPeer) throws -> Value) throws -> Value {
        try run {
            let connection = try hang(ReactorIO.connect(to: endpoint, timeout: .seconds(60)))
            defer { connection.close() }
            return try body(RawPeer(connection))
        }
    }
}

/// A peer of a tested server that sends raw bytes. Each call waits in simulated time until it is done.
///
/// ```swift
/// try network.test.connect(to: "server:80") { peer in
///     try peer.send("GET / HTTP/1.0\r\n\r\n")
///     try peer.end()
///     #expect(try peer.receiveToEnd().hasSuffix("hello"))
/// }
/// ```
public struct RawPeer {
    /// The connection, for anything else.
    public let connection: Connection

    init(_ connection: Connection) { self.connection = connection }

    /// The peer did not send the expected bytes.
    public struct Mismatch: Error, CustomStringConvertible {
        /// The expected and the received text.
        public let description: String
    }

    /// Sends the bytes of `text`.
    /// - Throws: `StreamError`, or `PromiseError.timedOut` if the other side takes nothing for a minute.
    public func send(_ text: String) throws { try send(bytes: Array(text.utf8)) }

    /// Sends `bytes`.
    /// - Throws: the same errors as `send(_:)`.
    public func send(bytes: [UInt8]) throws { try hang(connection.write(bytes), timeout: .seconds(60)) }

    /// Reads as many bytes as `text` has, and compares.
    /// - Parameters:
    ///   - text: the next text from the peer.
    ///   - limit: the longest wait, in simulated time.
    /// - Throws: `Mismatch`.
    public func expect(_ text: String, within limit: Duration = .seconds(60)) throws {
        var arrived: [UInt8] = []
        let wanted = Array(text.utf8)
        while arrived.count < wanted.count, wanted.starts(with: arrived) {
            let more = try receive(upTo: wanted.count - arrived.count, within: limit)
            if more.isEmpty { break }
            arrived += more
        }
        if arrived != wanted {
            throw Mismatch(
                description:
                    "expected \(text.debugDescription), got \(String(decoding: arrived, as: UTF8.self).debugDescription)"
            )
        }
    }

    /// Reads the next bytes.
    /// - Parameters:
    ///   - count: the maximum number of bytes.
    ///   - limit: the longest wait, in simulated time.
    /// - Returns: the bytes; empty at the end of the stream.
    /// - Throws: `StreamError` after a reset; `PromiseError.timedOut`.
    public func receive(upTo count: Int = 65_536, within limit: Duration = .seconds(60)) throws -> [UInt8] {
        switch try hang(connection.read(upTo: count), timeout: limit) {
        case .bytes(let bytes): return Array(bytes)
        case .end: return []
        case .failed(let error): throw error
        }
    }

    /// Reads to the end of the other side's stream.
    /// - Parameter limit: the longest wait for each part.
    /// - Returns: the bytes as text.
    /// - Throws: the same errors as `receive`.
    public func receiveToEnd(within limit: Duration = .seconds(60)) throws -> String {
        var all: [UInt8] = []
        while true {
            let more = try receive(within: limit)
            if more.isEmpty { return String(decoding: all, as: UTF8.self) }
            all += more
        }
    }

    /// Ends this side of the stream; reading continues.
    public func end() throws { try hang(connection.shutdownWrite(), timeout: .seconds(60)) }

    /// Ends the connection with a reset.
    public func reset() { connection.abort() }
}
