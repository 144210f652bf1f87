import Glibc
import Promises
import Reactor
import ReactorIO
import SimulatedNetwork

/// Servers and clients on a network whose links, machines and system calls fail by dice, for some minutes of simulated time.
/// Then nothing fails any more, and everything must work again; then the servers drain while clients misbehave.
///
/// While things fail, a client gets what it was promised, all of it and in order, or an error; a request has its answer, or an
/// error, by its time limit. Afterwards all that clients ask for succeeds, time-outs end what is silent in their time, and a
/// drain ends by its deadline. In the end no handler runs, no descriptor is open, no connection is in memory, and nothing keeps a
/// machine busy.
final class SoakRound {
    struct Fault: Error, CustomStringConvertible {
        let description: String
    }

    let network: VirtualNetwork
    let server: SimulatedHost
    private(set) var services: SoakServices!
    private(set) var clients: [SoakClient] = []
    /// Whether nothing fails any more: from then on, nothing may fail.
    private(set) var isCalm = false
    private var connections: [WeakConnection] = []
    private var faults: [String] = []
    /// When a machine that pauses goes on.
    private var pauses: [String: LoopInstant] = [:]
    private(set) var finished = 0
    private(set) var failed = 0

    init(_ network: VirtualNetwork) {
        self.network = network
        server = network.host("server")
    }

    func run(_ makeServices: (SoakRound) -> SoakServices, _ makeClient: (SoakRound, SimulatedHost) -> SoakClient) throws
    {
        services = makeServices(self)
        clients = (0..<1 + dice.below(4)).map { makeClient(self, network.host("client\($0)")) }
        for client in clients { chooseLink(client.link) }
        services.start()
        for client in clients { client.startSessions() }
        if dice.happens(0.6) { chooseFaults(server) }
        for client in clients where dice.happens(0.3) { chooseFaults(client.host) }
        for _ in 0..<dice.below(6) { startTrouble() }
        network.run(for: .seconds(Int64(20 + dice.below(100))))
        calmDown()
        try settle("a session of the time in which things fail", clients.flatMap(\.sessions), mustSucceed: false)
        try probe()
        try drain()
        try check()
    }

    var dice: SeededRandom {
        get { network.random }
        _modify { yield &network.random }
    }

    func fault(_ text: String) { faults.append("at \(network.now): \(text)") }

    /// Notes a connection, which must not be in memory at the end.
    func note(_ connection: Connection, isOfServer: Bool = false) -> Connection {
        connections.append(WeakConnection(connection: connection, name: "\(connection)", isOfServer: isOfServer))
        return connection
    }

    /// After a crash, which ends no session: objects that refer to each other stay in memory, as no process's would.
    func forgetServersConnections() { connections.removeAll(where: \.isOfServer) }

    private struct WeakConnection {
        weak var connection: Connection?
        let name: String
        let isOfServer: Bool
    }

    /// Notes if `limit` has passed since `began`, unless the machine has paused meanwhile: then it ends nothing.
    func expectInTime(_ host: SimulatedHost, _ began: LoopInstant, _ limit: Duration, _ what: String) {
        if network.now > began.advanced(by: limit + .milliseconds(1)) && pauses[host.name].map({ $0 <= began }) ?? true
        {
            fault("\(what) ended \(began.duration(to: network.now)) after it began; its limit is \(limit)")
        }
    }

    // MARK: Trouble

    private func chooseLink(_ link: SimulatedLink) {
        let least = dice.element([0, 0, 1, 20, 200])
        link.latency = .milliseconds(least) ... .milliseconds(least + dice.element([0, 1, 50]))
        link.cut = dice.element(
            [.whole, .whole, .segments(100), .segments(1448), .random]
                + (dice.happens(0.1) ? [.everyByte] : []))
        link.loss = dice.element([0, 0, 0.01, 0.2])
        if dice.happens(0.2) {
            link.bandwidth = dice.element([2_000, 100_000])
            // Small pieces would keep a slow link busy with their headers for minutes, and no calm would end that.
            link.cut = dice.element([.whole, .segments(1448)])
        }
    }

    /// Errors that the man pages of these calls name.
    private static let errors: [(SystemCall, [CInt])] = [
        (.accept, [EINTR, EMFILE, ENFILE, ENOBUFS, ENOMEM, ECONNABORTED]),
        (.socket, [EMFILE, ENFILE, ENOBUFS, ENOMEM]),
        (.connect, [EINTR, ENOBUFS]), (.receive, [EINTR, ENOMEM]), (.send, [EINTR, ENOBUFS, ENOMEM]),
        (.sendVector, [EINTR, ENOBUFS, ENOMEM]), (.epollControl, [ENOMEM, ENOSPC]), (.epollWait, [EINTR]),
        (.shutdown, [ENOBUFS]),
    ]

    private func chooseFaults(_ host: SimulatedHost) {
        for (call, codes) in Self.errors where dice.happens(0.3) {
            host.faults.fail(call, with: dice.element(codes), probability: dice.element([0.002, 0.02, 0.2]))
        }
        host.faults.shortCounts = dice.element([0, 0.1, 0.9])
        if dice.happens(0.1) { host.faults.descriptorLimit = 3 + dice.below(20) }
    }

    private func startTrouble() {
        let client = dice.element(clients)
        let length = Duration.milliseconds(Int64(1 + dice.below(60_000)))
        let kind = dice.below(7)
        after(.milliseconds(Int64(dice.below(60_000)))).done { [self] in
            if isCalm { return }
            switch kind {
            case 0: network.partition(client.host, server, for: length)
            case 1: network.reset(client.host, server)
            case 2: pause(server, for: length)
            case 3: pause(client.host, for: length)
            case 4:
                services.crash()
                after(length).done { [self] in if !isCalm { services.restart() } }
            case 5: if server.isUp { services.drain(deadline: .seconds(Int64(dice.below(10)))) }
            default: client.link.connects = dice.element([.normal, .refused, .ignored])
            }
        }
    }

    private func pause(_ host: SimulatedHost, for length: Duration) {
        host.pause(for: length)
        pauses[host.name] = max(pauses[host.name] ?? network.now, network.now + length)
    }

    /// What a short read or write does is no failure.
    private func calmDown() {
        isCalm = true
        for host in clients.map(\.host) + [server] {
            host.faults.clear()
            host.faults.shortCounts = dice.element([0, 0.3, 0.9])
        }
        for client in clients {
            network.heal(client.host, server)
            client.link.connects = .normal
            client.link.loss = 0
            // So that no answer is later than a limit of time allows.
            if client.link.bandwidth != nil { client.link.bandwidth = 100_000 }
        }
        if !server.isUp { services.restart() }
        // A machine may still pause; one that lacked descriptors listens a second later.
        network.run(for: .seconds(70))
        if !services.isListening { fault("the services do not listen again") }
    }

    // MARK: The end

    /// Waits for sessions.
    private func settle(_ what: String, _ sessions: [SoakSession], mustSucceed: Bool) throws {
        for (name, session) in sessions {
            do {
                try hang(session, timeout: .seconds(5000))
                finished += 1
            } catch PromiseError.timedOut where session.isPending {
                let reasons = clients.map { $0.host.run { EventLoop.current.keepAliveReasons } }
                fault("\(what), \(name), has neither ended nor failed; clients wait for \(reasons)")
            } catch {
                failed += 1
                if mustSucceed { fault("\(what), \(name), has failed: \(error)") }
            }
        }
        try throwFaults()
    }

    private func throwFaults() throws {
        if faults.isEmpty { return }
        if getenv("SIMULATION_SEED") != nil { print(network.transcript) }
        throw Fault(description: faults.joined(separator: "\n"))
    }

    /// Everything works: more at once than the servers have room for.
    private func probe() throws {
        let what = "a session after all trouble"
        try settle(what, clients.flatMap { $0.startProbes() }, mustSucceed: true)
        // The connections that are kept for others, and those of machines that are gone.
        network.run(for: .seconds(100))
        try settle(what, clients.flatMap { $0.startLateProbes(isFirst: $0 === clients[0]) }, mustSucceed: true)
        network.run(for: .seconds(40))
        let open = server.openDescriptors, listening = services.listeners.count
        if open != listening { fault("the server has \(open) open descriptors, and \(listening) listen") }
        try throwFaults()
    }

    private func drain() throws {
        for client in clients { client.host.run { client.misbehave() } }
        // By then the servers have read as much as they can: what is under way when a drain begins has no answer.
        network.run(for: .seconds(10))
        let began = network.now
        try hang(services.drain(deadline: .seconds(5), isLast: true), timeout: .seconds(30))
        expectInTime(server, began, .seconds(5), "a drain")
        try settle("a client that drains", clients.flatMap { $0.comeToReason() }, mustSucceed: true)
    }

    private func check() throws {
        for client in clients { client.host.run { client.close() } }
        network.run(for: .seconds(200))
        if services.running != 0 { fault("\(services.running) handlers still run") }
        for host in clients.map(\.host) + [server] where host.openDescriptors != 0 {
            let reasons = host.run { EventLoop.current.keepAliveReasons }
            fault("\(host.name) has \(host.openDescriptors) open descriptors; it waits for \(reasons)")
        }
        services.close()
        for host in clients.map(\.host) + [server] {
            let left = host.run { EventLoop.current.metrics }
            if left.timers != (host === server ? services.endlessTimers : 0) || left.waitingHandlers != 0 {
                fault("\(host.name) has \(left.timers) timers and \(left.waitingHandlers) waiting handlers")
            }
        }
        for entry in connections where entry.connection != nil { fault("\(entry.name) is still in memory") }
        try throwFaults()
    }
}

extension SeededRandom {
    mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }
    mutating func element<Element>(_ array: [Element]) -> Element { array[below(array.count)] }
}

/// Rounds with the seeds from SIMULATION_FIRST_SEED on; SIMULATION_SEEDS is their number.
func soak(
    seeds count: UInt64, _ makeServices: @escaping @Sendable (SoakRound) -> SoakServices,
    _ makeClient: @escaping @Sendable (SoakRound, SimulatedHost) -> SoakClient
) throws {
    func number(_ name: String) -> UInt64? { getenv(name).flatMap { UInt64(String(cString: $0)) } }
    let first = number("SIMULATION_FIRST_SEED") ?? 1
    try forEachSeed(first...first + (number("SIMULATION_SEEDS") ?? count) - 1) { network in
        let round = SoakRound(network)
        try round.run(makeServices, makeClient)
        if round.finished == 0 { throw SoakRound.Fault(description: "no session has succeeded") }
    }
}
