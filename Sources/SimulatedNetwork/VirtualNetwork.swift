import Promises
import Reactor
import ReactorIO
import ReactorLibc

/// Hosts and links inside a test. Programs that use this library run unchanged on a simulated kernel, on one thread, in
/// virtual time, reproducibly by seed.
///
/// ```swift
/// @Test func theClientSurvivesAPartition() throws {
///     try withSimulatedNetwork(seed: 7) { network in
///         let database = network.host("db"), web = network.host("web")
///         network.link(web, database).latency = .milliseconds(3) ... .milliseconds(9)
///         try database.run { try Listener.bind("0.0.0.0:5432").serve { echo($0) }.cauterize() }
///         let answer = web.run { query("db:5432") }
///         network.partition(web, database, for: .seconds(40))
///         #expect(try hang(answer, timeout: .seconds(60)) == "…")
///     }
/// }
/// ```
///
/// The test itself is the host `test`. Threads, children, pipes and files are real, so a `LoopGroup` is refused. See
/// docs/guides/testing.md.
public final class VirtualNetwork {
    /// The seed of all randomness here.
    public let seed: UInt64
    let kernel: SimulatedKernel
    private var hosts: [SimulatedHost] = []
    private var answers: [String: (answer: NameAnswer, delay: Duration)] = [:]
    private lazy var driver = NetworkDriver(self)
    /// The host of the simulation's body.
    public private(set) var test: SimulatedHost!

    /// The simulated name service's answer.
    public enum NameAnswer: Sendable {
        /// The addresses in order of preference; ports do not matter.
        case addresses([SocketAddress])
        /// An error code of getaddrinfo(3), such as `EAI_NONAME`.
        case error(CInt)
    }

    init(seed: UInt64) {
        self.seed = seed
        kernel = SimulatedKernel(seed: seed)
    }

    // MARK: Hosts

    /// Returns the host with this name, and makes it on first use.
    ///
    /// ```swift
    /// let server = network.host("server"), router = network.host("router", addresses: [try SocketAddress("10.9.0.1:0")])
    /// ```
    ///
    /// - Parameters:
    ///   - name: the name for the name service and the transcript.
    ///   - addresses: the addresses; by default one each from 10.0.0.0/8 and fd00::/8.
    /// - Returns: the host.
    public func host(_ name: String, addresses: [SocketAddress] = []) -> SimulatedHost {
        if let host = hosts.first(where: { $0.name == name }) { return host }
        let stack = makeStack(name, addresses)
        let (process, loop) = start(stack, SystemFaults(kernel))
        let host = SimulatedHost(stack, self, process: process, loop: loop, isLoopOfTest: false)
        hosts.append(host)
        driver.add(host)
        return host
    }

    private func makeStack(_ name: String, _ addresses: [SocketAddress]) -> HostStack {
        let number = hosts.count + 1
        let usual = [
            SocketAddress(host: "10.0.\(number / 256).\(number % 256)", port: 0)!,
            SocketAddress(host: "fd00::\(String(number, radix: 16))", port: 0)!,
        ]
        return HostStack(name, addresses.isEmpty ? usual : addresses, kernel)
    }

    func start(_ stack: HostStack, _ faults: SystemFaults) -> (SimulatedProcess, EventLoop) {
        let process = SimulatedProcess(kernel, stack, faults)
        return (process, EventLoop.makeInner(clock: kernel.clock, syscalls: syscalls(of: process)))
    }

    private func syscalls(of process: SimulatedProcess) -> Syscalls {
        process.makeSyscalls { [unowned self] host in lookUp(host) }
    }

    func didStart(_ host: SimulatedHost) { driver.add(host) }

    func discard(_ host: SimulatedHost) {
        driver.remove(host)
        host.loop.endInner()
    }

    // MARK: Names

    /// Sets the name service's answer for a name. A host's name needs none.
    ///
    /// ```swift
    /// network.setName("service", .addresses(old.addresses + new.addresses), after: .milliseconds(20))
    /// network.setName("gone", .error(EAI_NONAME))
    /// ```
    ///
    /// - Parameters:
    ///   - name: the name.
    ///   - answer: the answer.
    ///   - delay: the time until the answer.
    public func setName(_ name: String, _ answer: NameAnswer, after delay: Duration = .zero) {
        answers[name] = (answer, delay)
    }

    private func lookUp(_ name: String) -> (addresses: [sockaddr_storage], code: CInt, delay: Duration) {
        let host = hosts.first { $0.name == name }
        let (answer, delay) = answers[name] ?? (host.map { .addresses($0.addresses) } ?? .error(EAI_NONAME), .zero)
        switch answer {
        case .addresses(let addresses): return (addresses.map(\.storage), 0, delay)
        case .error(let code): return ([], code, delay)
        }
    }

    // MARK: Links

    /// Returns the link between two hosts in both directions: `network.link(web, database).loss = 0.01`.
    public func link(_ one: SimulatedHost, _ other: SimulatedHost) -> SimulatedLink {
        SimulatedLink(ways: [way(one, other), way(other, one)])
    }

    /// Returns one direction of a link: `network.link(from: web, to: database).bandwidth = 9600`.
    public func link(from sender: SimulatedHost, to receiver: SimulatedHost) -> SimulatedLink {
        SimulatedLink(ways: [way(sender, receiver)])
    }

    private func way(_ from: SimulatedHost, _ to: SimulatedHost) -> SimulatedWay {
        kernel.way(from: from.stack, to: to.stack)
    }

    /// Cuts the link between two hosts. Datagrams are lost. Streams wait and then continue, unless a time-out ends
    /// them: a connect after 127 s, a connection with unacknowledged bytes after 15 minutes.
    ///
    /// ```swift
    /// network.partition(web, database, for: .seconds(40))
    /// let rows = try hang(web.run { client.query("…") }, timeout: .seconds(60))
    /// ```
    ///
    /// - Parameters:
    ///   - one: a host.
    ///   - other: another host.
    ///   - duration: the time until `heal` is called; `nil` to call it yourself.
    public func partition(_ one: SimulatedHost, _ other: SimulatedHost, for duration: Duration? = nil) {
        for way in link(one, other).ways { way.hold(losesDatagrams: true) }
        for stream in kernel.streams(between: one.stack, and: other.stack) { stream.linkWasCut() }
        guard let duration else { return }
        kernel.after(duration) { [unowned self] in heal(one, other) }
    }

    /// Ends a partition: `network.heal(web, database)`.
    public func heal(_ one: SimulatedHost, _ other: SimulatedHost) { link(one, other).release() }

    /// Resets both ends of every connection between two hosts: `network.reset(web, database)`.
    public func reset(_ one: SimulatedHost, _ other: SimulatedHost) {
        for stream in kernel.streams(between: one.stack, and: other.stack) { stream.breakConnection() }
    }

    // MARK: Time and dice

    /// The network's own random numbers, from the seed.
    ///
    /// ```swift
    /// let size = Int.random(in: 1...9000, using: &network.random)
    /// ```
    public var random: SeededRandom {
        get { kernel.random }
        _modify { yield &kernel.random }
    }

    /// The simulated time, which starts at zero: `#expect(network.now - began < .seconds(5))`.
    public var now: LoopInstant { kernel.clock.now }

    /// Passes simulated time on all hosts: `network.run(for: .seconds(3600))`.
    /// - Parameter duration: the time to pass.
    public func run(for duration: Duration) { hang(after(duration)) }

    /// The packets so far, one per line, with time, source, target, content and fate, and the system calls failed by
    /// `faults`.
    ///
    ///     0.003000000 web:32768 > db:5432: 12 bytes "SELECT 1;\r\n", arrives 0.009120331
    ///     0.009120331 db: send: No buffer space available (ENOBUFS)
    ///
    /// Two runs with the same seed have the same transcript, which keeps at most the last 65,536 lines.
    public var transcript: String { kernel.transcript.text(kernel.name) }

    // MARK: Life

    func simulate<Value>(_ body: (VirtualNetwork) throws -> Value) rethrows -> Value {
        let stack = makeStack("test", [])
        let process = SimulatedProcess(kernel, stack, SystemFaults(kernel))
        return try EventLoop.withLoop(clock: kernel.clock, syscalls: syscalls(of: process)) { loop in
            test = SimulatedHost(stack, self, process: process, loop: loop, isLoopOfTest: true)
            hosts.append(test)
            driver.add(test)
            defer {
                for host in hosts where host !== test && host.isUp { host.crash() }
                driver.end()
                kernel.vanish(process)
                kernel.end()
            }
            return try body(self)
        }
    }
}

/// Runs `body` with a simulated network, then ends the network.
///
/// ```swift
/// try withSimulatedNetwork(seed: 7) { network in
///     let server = network.host("server")
///     try server.run { try Listener.bind("0.0.0.0:80").serve { echo($0) }.cauterize() }
///     try network.test.connect(to: "server:80") { peer in … }
/// }
/// ```
///
/// The environment variable `SIMULATION_SEED` replaces `seed`. If `body` throws, a line on standard error names the
/// seed that repeats it.
/// - Parameters:
///   - seed: determines all randomness: latencies, losses, faults, the order of hosts.
///   - body: called once, inside this call, on the loop of the host `test`, in virtual time.
/// - Returns: the result of `body`.
/// - Throws: the error of `body`.
@available(*, noasync, message: "call it in a synchronous test")
@discardableResult
public func withSimulatedNetwork<Value>(seed: UInt64 = 1, _ body: (VirtualNetwork) throws -> Value) rethrows -> Value {
    let seed = seedOfEnvironment ?? seed
    do {
        return try VirtualNetwork(seed: seed).simulate(body)
    } catch {
        let line = "swift-reactor: a simulation has failed: \(error); SIMULATION_SEED=\(seed) repeats it\n"
        _ = line.withCString { write(2, $0, strlen($0)) }
        throw error
    }
}

let seedOfEnvironment: UInt64? = getenv("SIMULATION_SEED").flatMap { UInt64(String(cString: $0)) }
