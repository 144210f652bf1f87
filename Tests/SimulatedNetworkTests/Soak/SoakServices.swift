import Promises
import Reactor
import ReactorHTTP
import SimulatedNetwork

@testable import echo_server

/// What the server of a soak runs: the echo server that is shipped, on port 7; pages and a WebSocket, on port 80; on port 81 one
/// that ends in the middle of its answers.
final class SoakServices {
    private unowned let round: SoakRound
    private let host: SimulatedHost
    private let maxConnections: Int
    private var echo: EchoServer?
    private var others: [Listener] = []
    /// How many handlers run.
    private(set) var running = 0
    /// Counts crashes and drains: what one life has started does not count in the next.
    private var life = 0

    init(_ round: SoakRound) {
        self.round = round
        host = round.server
        maxConnections = 1 + round.dice.below(8)
    }

    private var listeners: [Listener] { (echo?.listeners ?? []) + others }
    var isListening: Bool { listeners.count == 3 }
    /// How many sockets listen.
    var sockets: Int { listeners.count }

    func start() {
        host.run {
            do {
                var options = Options()
                options.addresses = [try SocketAddress("0.0.0.0:7")]
                options.maxConnections = maxConnections
                options.idleTimeout = .seconds(30)
                let echo = try EchoServer(options, DescriptorLimit(initial: 10_000, current: 10_000))
                let pages = try Listener.bind("0.0.0.0:80")
                let liar = try Listener.bind("0.0.0.0:81")
                (self.echo, others) = (echo, [pages, liar])
                echo.serve().cauterize()
                pages.serveHTTP(onError: { _, _ in }) { [self] request in counted(answer(request)) }.cauterize()
                liar.serve { [self] connection in counted(endEarly(round.note(connection))) }.cauterize()
            } catch {
                // By a fault: later.
                close()
                let life = life
                after(.seconds(1)).done { [self] in if self.life == life, listeners.isEmpty { start() } }
            }
        }
    }

    private func counted<Value>(_ work: Promise<Value>) -> Promise<Value> {
        let life = life
        running += 1
        return work.ensure { [self] in if life == self.life { running -= 1 } }
    }

    private func close() {
        for listener in listeners { listener.close() }
        (echo, others) = (nil, [])
    }

    func crash() {
        if !host.isUp { return }
        life += 1
        running = 0
        host.crash()
        (echo, others) = (nil, [])
    }

    func restart() {
        // It may be up again, after another crash.
        crash()
        host.restart {}
        start()
    }

    /// Drains all listeners.
    /// - Parameter isLast: whether nothing listens afterwards.
    @discardableResult
    func drain(deadline: Duration, isLast: Bool = false) -> Promise<Void> {
        let (began, life, drained) = (round.network.now, life, listeners)
        return host.run {
            (echo, others) = (nil, [])
            let drains = drained.map { $0.drain(deadline: deadline) }
            return when(guarantees: drains).asPromise().done { [self] _ in
                if life != self.life { return }
                round.expectInTime(host, began, deadline, "a drain")
                if !isLast { start() }
            }
        }
    }

    func end() { close() }

    // MARK: Handlers

    private func answer(_ request: Request) -> Promise<Response> {
        switch request.path {
        case "/slow": after(.milliseconds(700)).map { Response("slow") }
        case "/never": after(.seconds(1000)).map { Response("never") }
        case "/echo": request.body.bytes().map { Response($0) }
        case "/long": .value(Response([UInt8](repeating: 7, count: 8000)))
        case "/drip": .value(.stream { [self] output in drip(output, 50) })
        case "/chat": .value(.webSocket(request) { socket in socket.forEach { socket.send($0) } })
        default: .value(Response("hello"))
        }
    }

    /// A byte each second.
    private func drip(_ output: BodyOutput, _ left: Int) -> Promise<Void> {
        if left == 0 { return .value }
        return output.write([7]).then { after(.seconds(1)) }.then { self.drip(output, left - 1) }
    }

    /// A half of an answer, and the end.
    private func endEarly(_ connection: Connection) -> Promise<Void> {
        connection.read().then { _ in
            connection.write("HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n" + String(repeating: "x", count: 2500))
        }
    }
}
