import Promises
import Reactor
import ReactorHTTP
import SimulatedNetwork

/// A client machine of a soak, and what runs there.
final class SoakClient {
    typealias Session = (name: String, promise: Promise<Void>)

    private unowned let round: SoakRound
    let host: SimulatedHost
    let link: SimulatedLink
    /// Used from the beginning to the end, so that it must come back from everything.
    private let web: HTTPClient
    private let options: HTTPClient.Options
    private(set) var sessions: [Session] = []
    private var bad: [Connection] = []
    private var badBytes = 0

    init(_ round: SoakRound, _ host: SimulatedHost) {
        self.round = round
        self.host = host
        link = round.network.link(host, round.server)
        var options = HTTPClient.Options()
        options.connections = PoolLimits(perKey: 1 + round.dice.below(3), idleTimeout: .seconds(30))
        options.proxies = Proxies()
        if round.dice.happens(0.7) { options.total = .seconds(Int64(5 + round.dice.below(30))) }
        self.options = options
        web = host.run { HTTPClient(options) }
    }

    /// Sessions that begin in the first seconds.
    func startSessions() {
        host.run {
            for _ in 0..<1 + round.dice.below(6) {
                let start = Duration.milliseconds(Int64(round.dice.below(20_000)))
                let (name, session) = chooseSession()
                sessions.append((name, after(start).then { session() }))
            }
        }
    }

    private func chooseSession() -> (String, () -> Promise<Void>) {
        switch round.dice.below(10) {
        case 0..<5:
            let sizes = chooseSizes()
            let limit = Duration.seconds(Int64(5 + round.dice.below(100)))
            return ("an echo of \(sizes)", { [self] in echo(sizes, limit) })
        case 5..<8:
            let paths = (0..<1 + round.dice.below(5)).map { _ in
                round.dice.element(["/", "/slow", "/echo", "/long", "/drip", ":81/cut"])
            }
            return ("fetches of \(paths)", { [self] in fetch(paths[...], web) })
        default:
            let sizes = chooseSizes()
            return ("a chat of \(sizes)", { [self] in chat(sizes).timeout(.seconds(100)) })
        }
    }

    /// Whether the link takes as much as fills the buffers of both kernels, in a time that is short for the test too.
    private var isWide: Bool { link.bandwidth == nil && [.whole, .segments(1448)].contains(link.cut) }

    private func chooseSizes() -> [Int] {
        (0..<1 + round.dice.below(5)).map { _ in
            round.dice.element([1, 10, 500, 3000] + (isWide ? [70_000, 150_000] : []))
        }
    }

    /// What must succeed: one session of each kind.
    func startProbes() -> [Session] {
        host.run {
            let (first, second) = (chooseSizes(), chooseSizes())
            var calm = options
            // Others may have the connections for as long.
            (calm.total, calm.connections.waitTimeout) = (nil, nil)
            let web = HTTPClient(calm)
            let fetches = when(fulfilled: (0..<4).map { _ in fetch(["/", "/slow", "/echo", "/long", ":81/cut"], web) })
            return [
                ("an echo of \(first)", echo(first, nil)), ("an echo of \(second)", echo(second, nil)),
                ("a chat of \(first)", chat(first)), ("fetches", fetches.asVoid().ensure { web.close() }),
                ("a fetch of a client that was there before", fetch(["/"], self.web)),
            ]
        }
    }

    // MARK: Echoes

    private func connect(_ port: Int = 7) -> Promise<Connection> {
        let began = round.network.now
        return Promises.connect(to: "server:\(port)", timeout: .seconds(40))
            .ensure { [self] in round.expectInTime(host, began, .seconds(40), "a connect") }
            .map { [self] in round.note($0) }
    }

    /// Sends numbered bytes, reads them back, ends this side, and waits for the end of the other.
    private func echo(_ sizes: [Int], _ limit: Duration?) -> Promise<Void> {
        connect().then { [self] connection in
            let talk = exchange(sizes[...], connection, 1)
                .then { connection.shutdownWrite() }.then { connection.receive() }
                .done { [self] rest in if !rest.isEmpty { round.fault("more bytes came back than were sent") } }
            return (limit.map { talk.timeout($0) } ?? talk).ensure { connection.close() }
        }
    }

    private func exchange(_ sizes: ArraySlice<Int>, _ connection: Connection, _ first: UInt8) -> Promise<Void> {
        guard let size = sizes.first else { return .value }
        let bytes = (0..<size).map { UInt8(truncatingIfNeeded: $0 % 251) &+ first }
        // In two writes of one turn, and read while the rest is sent: neither side waits for the other.
        let halves = [bytes[..<(size / 2)], bytes[(size / 2)...]].map { connection.write(Array($0)) }
        let answer = connection.read(exactly: size)
        return when(fulfilled: when(fulfilled: halves), answer).then { [self] _, answer -> Promise<Void> in
            if Array(answer) != bytes { round.fault("other bytes came back than were sent") }
            return exchange(sizes.dropFirst(), connection, first &+ 1)
        }
    }

    /// Sends a byte and then nothing: the server's idle time-out ends that.
    func silence() -> Session {
        (
            "a silent client",
            host.run {
                connect().then { [self] connection in
                    connection.write([1]).then { connection.read(exactly: 1) }.then { [self] _ -> Promise<Void> in
                        let began = round.network.now
                        return connection.read().asPromise().done { [self] _ in
                            let time = began.duration(to: round.network.now)
                            if time > .seconds(28) && time < .seconds(32) { return }
                            round.fault("what was idle for 30 s has ended after \(time)")
                        }
                    }.ensure { connection.close() }
                }
            }
        )
    }

    // MARK: Fetches

    private func fetch(_ paths: ArraySlice<String>, _ client: HTTPClient) -> Promise<Void> {
        guard let path = paths.first else { return .value }
        let began = round.network.now
        let body: RequestBody? = path == "/echo" ? .text(String(repeating: "body", count: 300)) : nil
        return client.fetch("http://server\(path)", path == "/echo" ? .post : .get, body: body)
            .then { response in response.body.bytes().map { (response.status, $0.count) } }
            .ensure { [self] in
                if let total = client.options.total { round.expectInTime(host, began, total, "a fetch of \(path)") }
            }
            .done { [self] status, count in
                let expected = ["/": 5, "/slow": 4, "/echo": 1200, "/long": 8000, "/drip": 50, ":81/cut": 5000][path]!
                if status.code == 200 && count != expected {
                    round.fault("\(path): \(count) bytes instead of \(expected)")
                }
                // Anything but 200 is an answer of the server to what the link or a fault has done.
                if status.code != 200 && round.isCalm { round.fault("\(path): \(status)") }
            }
            .recover(policy: .allErrors) { error -> Promise<Void> in
                path == ":81/cut"
                    ? .value : Promise(error: SoakRound.Fault(description: "\(path): \(error)"))
            }
            .then { [self] in fetch(paths.dropFirst(), client) }
    }

    /// The first ones are refused. Those that wait for their connections make others.
    func fetchAfterRefusals() -> Session { ("fetches after refused ones", host.run { fetchAfterRefusals() }) }

    private func fetchAfterRefusals() -> Promise<Void> {
        link.connects = .refused
        var options = options
        options.total = nil
        let client = HTTPClient(options)
        let began = round.network.now
        // Twice as many as there are connections may be refused before the first one is told.
        let all: [Promise<Int>] = (0..<2 * options.connections.perKey + 2).map { _ in
            client.fetch("http://server/").then { $0.body.bytes() }.map(\.count)
                .ensure { [self] in link.connects = .normal }
        }
        return when(resolved: all).asPromise().done { [self] results in
            let successes = results.filter { (try? $0.get()) != nil }.count
            if successes < 2 { round.fault("after refused connects, \(successes) of 2 fetches have succeeded") }
            round.expectInTime(host, began, .seconds(25), "fetches after refused ones")
        }.ensure { client.close() }
    }

    // MARK: WebSockets

    private func chat(_ sizes: [Int]) -> Promise<Void> {
        web.webSocket("ws://server/chat", idle: .seconds(20)).then { [self] socket in
            converse(sizes[...], socket)
                .ensureThen { socket.close().recover { _ in .value } }
        }
    }

    private func converse(_ sizes: ArraySlice<Int>, _ socket: WebSocket) -> Promise<Void> {
        guard let size = sizes.first else { return .value }
        let message = WebSocket.Message.bytes((0..<size).map { UInt8(truncatingIfNeeded: $0) })
        return socket.send(message).then { socket.receive() }.then { [self] answer -> Promise<Void> in
            guard let answer else { throw FetchError.endedEarly }
            if answer != message { round.fault("another message came back than was sent") }
            return converse(sizes.dropFirst(), socket)
        }
    }

    // MARK: Misbehaviour

    /// Asks for the end of its connection, and does not close it: the server's limits end that.
    func hold() -> Session {
        (
            "a client that holds its connection",
            host.run {
                connect(80).then { [self] connection in
                    bad.append(connection)
                    return connection.write("GET / HTTP/1.1\r\nHost: server\r\nConnection: close\r\n\r\n")
                        .then { self.readToEnd(connection) }.asVoid()
                }
            }
        )
    }

    func misbehave() {
        host.run {
            badBytes = isWide ? 500_000 : 1000
            connect().done { [self] connection in
                bad.append(connection)
                // The echo is not read.
                connection.write([UInt8](repeating: 1, count: badBytes)).cauterize()
            }.cauterize()
            connect(80).done { [self] connection in
                bad.append(connection)
                connection.write("GET / HT").cauterize()
            }.cauterize()
            web.fetch("http://server/never").cauterize()
            web.webSocket("ws://server/chat").then { $0.receive() }.asVoid().cauterize()
        }
    }

    /// Reads what the servers have sent before they have drained.
    func comeToReason() -> Session {
        (
            "all",
            host.run {
                let reads = bad.map { connection in readToEnd(connection).map { (connection, $0) } }
                return when(fulfilled: reads).done { [self] ends in
                    for (connection, end) in ends {
                        if isWide, end.error == nil, end.count != badBytes, connection.peerAddress?.port == 7 {
                            round.fault("an echo ends in order after \(end.count) of \(badBytes) bytes")
                        }
                    }
                }
            }
        )
    }

    private func readToEnd(_ connection: Connection, _ count: Int = 0) -> Promise<(count: Int, error: SystemError?)> {
        connection.read().then { [self] outcome -> Promise<(count: Int, error: SystemError?)> in
            switch outcome {
            case .bytes(let bytes): readToEnd(connection, count + bytes.count)
            case .end: .value((count, nil))
            case .failed(let error): .value((count, error))
            }
        }
    }

    func close() {
        host.run {
            for connection in bad { connection.close() }
            bad = []
            sessions = []
            web.close()
        }
    }
}
