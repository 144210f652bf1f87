import Glibc
import Promises
import Reactor
import ReactorHTTP

@testable import SimulatedNetwork

/// Servers and clients on a network whose links, machines and system calls fail by dice, for some minutes of simulated time.
///
/// What must hold: a client gets its own bytes back in order, or an error; a request has its answer, or an error, by its time
/// limit; a drain ends by its deadline; afterwards no handler runs, no descriptor is open, and nothing keeps a machine busy.
final class SoakRound {
    struct Fault: Error, CustomStringConvertible {
        let description: String
    }

    private let network: VirtualNetwork
    private var dice: Dice
    private let server: SimulatedHost
    private let clients: [SimulatedHost]
    private var listeners: [Listener] = []
    private var running = 0
    /// Whether the last drain has begun.
    private var isOver = false
    private var sessions: [Promise<Void>] = []
    private var faults: [String] = []
    private(set) var finished = 0
    private(set) var failed = 0

    init(_ network: VirtualNetwork) {
        self.network = network
        dice = Dice(network.seed)
        server = network.host("server")
        clients = (0..<1 + dice.below(4)).map { network.host("client\($0)") }
    }

    func run() throws {
        for client in clients { chooseLink(network.link(client, server)) }
        server.run { startServers() }
        for client in clients { client.run { startSessions(client) } }
        if dice.happens(0.6) { chooseFaults(server) }
        for client in clients where dice.happens(0.3) { chooseFaults(client) }
        for _ in 0..<dice.below(6) { startTrouble() }
        network.run(for: .seconds(Int64(20 + dice.below(100))))
        server.faults.clear()
        for client in clients { client.faults.clear() }
        try drain()
        try check()
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
        let kind = dice.below(6)
        after(.milliseconds(Int64(dice.below(60_000)))).done { [self] in
            if isOver { return }
            switch kind {
            case 0: network.partition(client, server, for: length)
            case 1: network.reset(client, server)
            case 2: server.pause(for: length)
            case 3: client.pause(for: length)
            case 4:
                crashServer()
                after(length).done { [self] in
                    if isOver { return }
                    // It may be up again, after another crash.
                    crashServer()
                    server.restart { startServers() }
                }
            default: network.link(client, server).connects = dice.element([.normal, .refused, .ignored])
            }
        }
    }

    private func crashServer() {
        listeners = []
        running = 0
        server.crash()
    }

    // MARK: Servers

    private func startServers() {
        do {
            let echoes = try Listener.bind("0.0.0.0:7")
            let pages = try Listener.bind("0.0.0.0:80")
            let limits = ServeOptions(maxConnections: 1 + dice.below(8), memoryLimit: dice.happens(0.2) ? 100_000 : nil)
            echoes.serve(limits) { [self] connection in
                running += 1
                connection.idleTimeout = .seconds(30)
                return echo(connection).ensure { self.running -= 1 }
            }.cauterize()
            pages.serveHTTP(onError: { _, _ in }) { [self] request in
                running += 1
                return answer(request).ensure { self.running -= 1 }
            }.cauterize()
            listeners = [echoes, pages]
        } catch {
            // By a fault: later.
            after(.seconds(1)).done { [self] in if listeners.isEmpty { startServers() } }
        }
    }

    private func echo(_ connection: Connection) -> Promise<Void> {
        connection.read().then { outcome -> Promise<Void> in
            guard case .bytes(let bytes) = outcome else { return .value }
            return connection.write(bytes).then { self.echo(connection) }
        }
    }

    private func answer(_ request: Request) -> Promise<Response> {
        switch request.path {
        case "/slow": after(.milliseconds(700)).map { Response("slow") }
        case "/echo": request.body.bytes().map { Response($0) }
        case "/long": .value(Response([UInt8](repeating: 7, count: 8000)))
        default: .value(Response("hello"))
        }
    }

    // MARK: Clients

    private func startSessions(_ client: SimulatedHost) {
        for number in 0..<1 + dice.below(6) {
            let start = Duration.milliseconds(Int64(dice.below(20_000)))
            let session = dice.happens(0.5) ? echoSession(number) : httpSession(client)
            sessions.append(after(start).then { session() })
        }
    }

    /// Connects, sends numbered bytes, and reads them back.
    private func echoSession(_ number: Int) -> () -> Promise<Void> {
        let sizes = (0..<1 + dice.below(5)).map { _ in dice.element([1, 10, 500, 3000]) }
        let limit = Duration.seconds(Int64(5 + dice.below(100)))
        return { [self] in
            connect(to: "server:7", timeout: .seconds(40)).then { [self] connection in
                exchange(sizes[...], connection, UInt8(number)).timeout(limit)
                    .ensure { connection.close() }
            }
        }
    }

    private func exchange(_ sizes: ArraySlice<Int>, _ connection: Connection, _ first: UInt8) -> Promise<Void> {
        guard let size = sizes.first else { return .value }
        let bytes = (0..<size).map { UInt8(truncatingIfNeeded: $0) &+ first }
        // The answers are read while the rest is sent: neither side waits for the other.
        let written = connection.write(bytes)
        return when(fulfilled: written, connection.read(exactly: size)).then { [self] _, answer -> Promise<Void> in
            if Array(answer) != bytes { faults.append("other bytes came back than were sent") }
            return exchange(sizes.dropFirst(), connection, first &+ 1)
        }
    }

    private func httpSession(_ host: SimulatedHost) -> () -> Promise<Void> {
        var options = HTTPClient.Options()
        options.total = .seconds(Int64(1 + dice.below(30)))
        options.proxies = Proxies()
        let paths = (0..<1 + dice.below(5)).map { _ in dice.element(["/", "/slow", "/echo", "/long"]) }
        return { [self, options] in
            let client = HTTPClient(options)
            return fetchAll(paths[...], client, on: host).ensure { client.close() }
        }
    }

    private func fetchAll(_ paths: ArraySlice<String>, _ client: HTTPClient, on host: SimulatedHost) -> Promise<Void> {
        guard let path = paths.first else { return .value }
        let began = network.now
        let limit = client.options.total!
        let body: RequestBody? = path == "/echo" ? .text(String(repeating: "body", count: 300)) : nil
        return client.fetch("http://server\(path)", path == "/echo" ? .post : .get, body: body)
            .then { response in response.body.bytes().map { (response.status, $0.count) } }
            .ensure { [self] in
                let late = began.advanced(by: limit + .milliseconds(1))
                // A machine that pauses ends nothing meanwhile.
                if network.now > late && host.pausedUntil <= began.nanoseconds {
                    faults.append(
                        "a fetch of \(path) ended \(began.duration(to: network.now)) after it began; its limit is \(limit)"
                    )
                }
            }
            .then { [self] status, count -> Promise<Void> in
                let expected = ["/": 5, "/slow": 4, "/echo": 1200, "/long": 8000][path]!
                // Anything but 200 is an answer of the server to what the link or a fault has done.
                if status.code == 200 && count != expected {
                    faults.append("\(path): \(count) bytes instead of \(expected)")
                }
                return fetchAll(paths.dropFirst(), client, on: host)
            }
    }

    // MARK: The end

    private func drain() throws {
        for client in clients {
            network.heal(client, server)
            network.link(client, server).connects = .normal
        }
        isOver = true
        // A paused machine does not drain, and one that lacked descriptors listens a second later.
        network.run(for: .seconds(60))
        if !server.isUp { return }
        let began = network.now
        for listener in listeners {
            let drained = server.run { listener.drain(deadline: .seconds(5)) }
            _ = try hang(drained, timeout: .seconds(30))
        }
        if network.now > began.advanced(by: .milliseconds(10_500)) {
            faults.append("two drains with a deadline of 5 s took \(began.duration(to: network.now))")
        }
    }

    private func check() throws {
        for session in sessions {
            do {
                try hang(session, timeout: .seconds(1000))
                finished += 1
            } catch PromiseError.timedOut where session.isPending {
                faults.append("a session has neither ended nor failed")
            } catch { failed += 1 }
        }
        network.run(for: .seconds(200))
        if server.isUp && running != 0 { faults.append("\(running) handlers still run") }
        for host in clients + [server] where host.isUp {
            let left = host.process.openFiles
            if left != 0 {
                faults.append("\(host.name) has \(left) open descriptors; it waits for \(host.loop.keepAliveReasons)")
            }
        }
        if !faults.isEmpty { throw Fault(description: faults.joined(separator: "\n")) }
    }
}
