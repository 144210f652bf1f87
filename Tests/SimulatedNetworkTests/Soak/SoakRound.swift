import Glibc
import Promises
import Reactor

@testable import SimulatedNetwork

/// Servers and clients on a network whose links, machines and system calls fail by dice, for some minutes of simulated time.
/// Then nothing fails any more, and everything must work again; then the servers drain while clients misbehave.
///
/// While things fail, a client gets its own bytes back in order, or an error; a request has its answer, or an error, by its time
/// limit. Afterwards all that clients ask for succeeds, time-outs end what is silent in their time, and a drain ends by its
/// deadline. In the end no handler runs, no descriptor is open, no connection is in memory, and nothing keeps a machine busy.
final class SoakRound {
    struct Fault: Error, CustomStringConvertible {
        let description: String
    }

    let network: VirtualNetwork
    var dice: Dice
    let server: SimulatedHost
    private(set) var services: SoakServices!
    private(set) var clients: [SoakClient] = []
    /// Whether nothing fails any more: from then on, nothing may fail.
    private(set) var isCalm = false
    private var connections: [WeakConnection] = []
    private var faults: [String] = []
    private(set) var finished = 0
    private(set) var failed = 0

    init(_ network: VirtualNetwork) {
        self.network = network
        dice = Dice(network.seed)
        server = network.host("server")
    }

    func run() throws {
        services = SoakServices(self)
        clients = (0..<1 + dice.below(4)).map { SoakClient(self, network.host("client\($0)")) }
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

    func fault(_ text: String) { faults.append("at \(network.now): \(text)") }

    /// Notes a connection, which must not be in memory at the end.
    func note(_ connection: Connection) -> Connection {
        connections.append(WeakConnection(connection: connection, name: "\(connection)"))
        return connection
    }

    private struct WeakConnection {
        weak var connection: Connection?
        let name: String
    }

    /// Notes if `limit` has passed since `began`, unless the machine has paused meanwhile: then it ends nothing.
    func expectInTime(_ host: SimulatedHost, _ began: LoopInstant, _ limit: Duration, _ what: String) {
        if network.now > began.advanced(by: limit + .milliseconds(1)) && host.pausedUntil <= began.nanoseconds {
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
        if dice.happens(0.2) { link.bandwidth = dice.element([2_000, 100_000]) }
    }

    /// Errors that the man pages of these calls name.
    private static let errors: [(SystemCall, [CInt])] = [
        (.accept, [EINTR, EMFILE, ENFILE, ENOBUFS, ENOMEM, ECONNABORTED]),
        (.socket, [EMFILE, ENFILE, ENOBUFS, ENOMEM]),
        (.connect, [EINTR, ENOBUFS]), (.receive, [EINTR, ENOMEM]), (.send, [EINTR, ENOBUFS, ENOMEM]),
        (.sendVector, [EINTR, ENOBUFS, ENOMEM]), (.epollControl, [ENOMEM, ENOSPC]), (.epollWait, [EINTR]),
        (.setSocketOption, [ENOMEM]), (.shutdown, [ENOBUFS]),
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
            case 2: server.pause(for: length)
            case 3: client.host.pause(for: length)
            case 4:
                services.crash()
                after(length).done { [self] in if !isCalm { services.restart() } }
            case 5: if server.isUp { services.drain(deadline: .seconds(Int64(dice.below(10)))) }
            default: client.link.connects = dice.element([.normal, .refused, .ignored])
            }
        }
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
    private func settle(_ what: String, _ sessions: [SoakClient.Session], mustSucceed: Bool) throws {
        for (name, session) in sessions {
            do {
                try hang(session, timeout: .seconds(5000))
                finished += 1
            } catch PromiseError.timedOut where session.isPending {
                let reasons = clients.map { $0.host.loop.keepAliveReasons }
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
        try settle("a session after all trouble", clients.flatMap { $0.startProbes() }, mustSucceed: true)
        // The connections that are kept for others, and those of machines that are gone.
        network.run(for: .seconds(100))
        try settle("a session after all trouble", clients.map { $0.fetchAfterRefusals() }, mustSucceed: true)
        try settle("a session after all trouble", [clients[0].silence(), clients[0].hold()], mustSucceed: true)
        network.run(for: .seconds(40))
        let open = server.process.openFiles
        if open != services.sockets { fault("the server has \(open) open descriptors, and \(services.sockets) listen") }
        try throwFaults()
    }

    private func drain() throws {
        for client in clients { client.misbehave() }
        network.run(for: .seconds(2))
        let began = network.now
        try hang(services.drain(deadline: .seconds(5), isLast: true), timeout: .seconds(30))
        expectInTime(server, began, .seconds(5), "a drain")
        try settle("a client that drains", clients.map { $0.comeToReason() }, mustSucceed: true)
    }

    private func check() throws {
        for client in clients { client.close() }
        network.run(for: .seconds(200))
        if services.running != 0 { fault("\(services.running) handlers still run") }
        for host in clients.map(\.host) + [server] {
            let left = host.process.openFiles
            if left == 0 { continue }
            fault("\(host.name) has \(left) open descriptors; it waits for \(host.loop.keepAliveReasons)")
        }
        services.end()
        for entry in connections where entry.connection != nil { fault("\(entry.name) is still in memory") }
        try throwFaults()
    }
}
