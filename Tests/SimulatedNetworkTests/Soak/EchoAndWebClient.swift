import Promises
import Reactor
import ReactorHTTP
import ReactorIO
import SimulatedNetwork

/// A client of `EchoAndWebServices`.
final class EchoAndWebClient: SoakClient {
    /// Used from the beginning to the end, so that it must come back from everything.
    private let web: HTTPClient
    private let options: HTTPClient.Options

    override init(_ round: SoakRound, _ host: SimulatedHost) {
        var options = HTTPClient.Options()
        options.connections = PoolLimits(perKey: 1 + round.dice.below(3), idleTimeout: .seconds(30))
        options.proxies = Proxies()
        if round.dice.happens(0.7) { options.total = .seconds(Int64(5 + round.dice.below(30))) }
        self.options = options
        web = host.run { HTTPClient(options) }
        super.init(round, host)
    }

    override func chooseSession() -> (String, () -> Promise<Void>) {
        let limit = Duration.seconds(Int64(5 + round.dice.below(100)))
        switch round.dice.below(11) {
        case 0..<5:
            let sizes = chooseSizes()
            return ("an echo of \(sizes)", { [self] in echo(sizes, limit) })
        case 5..<8:
            let paths = (0..<1 + round.dice.below(5)).map { _ in
                round.dice.element(["/", "/slow", "/echo", "/long", "/drip", ":81/cut"])
            }
            return ("fetches of \(paths)", { [self] in fetch(paths[...], web) })
        case 8:
            let size = chooseSizes()[0]
            return ("a download of \(size)", { [self] in download(size).timeout(limit) })
        default:
            let sizes = chooseSizes()
            return ("a chat of \(sizes)", { [self] in chat(sizes).timeout(.seconds(100)) })
        }
    }

    override func probes() -> [SoakSession] {
        let (first, second) = (chooseSizes(), chooseSizes())
        var calm = options
        // Others may have the connections for as long.
        (calm.total, calm.connections.waitTimeout) = (nil, nil)
        let web = HTTPClient(calm)
        let fetches = when(fulfilled: (0..<4).map { _ in fetch(["/", "/slow", "/echo", "/long", ":81/cut"], web) })
        return [
            ("an echo of \(first)", echo(first, nil)), ("an echo of \(second)", echo(second, nil)),
            ("a chat of \(first)", chat(first)), ("fetches", fetches.asVoid().ensure { web.close() }),
            ("a download", download(first[0])),
            ("a fetch of a client that was there before", fetch(["/"], self.web)),
        ]
    }

    override func lateProbes(isFirst: Bool) -> [SoakSession] {
        let fetches = fetchAfterRefusals()
        if !isFirst { return [("fetches after refused ones", fetches)] }
        return [
            ("fetches after refused ones", fetches), ("a silent client", fetches.then { [self] in beSilent() }),
            ("a client that holds its connection", fetches.then { [self] in holdAfterAnswer() }),
        ]
    }

    // MARK: Echoes

    /// Sends numbered bytes, reads them back, ends this side, and waits for the end of the other.
    private func echo(_ sizes: [Int], _ limit: Duration?) -> Promise<Void> {
        connect(7).then { [self] connection in
            let talk = exchange(sizes[...], connection, 1)
                .then { connection.shutdownWrite() }.then { connection.receive() }
                .done { [self] rest in if !rest.isEmpty { round.fault("more bytes came back than were sent") } }
            return (limit.map { talk.timeout($0) } ?? talk).ensure { connection.close() }
        }
    }

    private func exchange(_ sizes: ArraySlice<Int>, _ connection: Connection, _ first: Int) -> Promise<Void> {
        guard let size = sizes.first else { return .value }
        let bytes = Self.pattern(size, from: first)
        // In two writes of one turn, and read while the rest is sent: neither side waits for the other.
        let halves = [bytes[..<(size / 2)], bytes[(size / 2)...]].map { connection.write(Array($0)) }
        let answer = connection.read(exactly: size)
        return when(fulfilled: when(fulfilled: halves), answer).then { [self] _, answer -> Promise<Void> in
            if Array(answer) != bytes { round.fault("other bytes came back than were sent") }
            return exchange(sizes.dropFirst(), connection, first + 1)
        }
    }

    /// Sends a byte and then nothing: the server's idle time-out ends that.
    private func beSilent() -> Promise<Void> {
        connect(7).then { [self] connection in
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

    private func download(_ size: Int) -> Promise<Void> {
        connect(82).then { [self] connection in
            connection.write("\(size)\n").then { [self] in readToEnd(connection) }.done { [self] end in
                if let error = end.error { throw error }
                // A server that drains has not read what it was asked for.
                if end.count == 0 { throw FetchError.endedEarly }
                if end.count != size { round.fault("a download ends in order after \(end.count) of \(size) bytes") }
            }.ensure { connection.close() }
        }
    }

    // MARK: Fetches

    private func fetch(_ paths: ArraySlice<String>, _ client: HTTPClient) -> Promise<Void> {
        guard let path = paths.first else { return .value }
        let (began, isCalm) = (round.network.now, round.isCalm)
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
                if status.code != 200 && isCalm { round.fault("\(path): \(status)") }
            }
            .recover(policy: .allErrors) { error -> Promise<Void> in
                path == ":81/cut"
                    ? .value : Promise(error: SoakRound.Fault(description: "\(path): \(error)"))
            }
            .then { [self] in fetch(paths.dropFirst(), client) }
    }

    /// The first ones are refused. Those that wait for their connections make others.
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
        let message = WebSocket.Message.bytes(Self.pattern(size))
        return socket.send(message).then { socket.receive() }.then { [self] answer -> Promise<Void> in
            guard let answer else { throw FetchError.endedEarly }
            if answer != message { round.fault("another message came back than was sent") }
            return converse(sizes.dropFirst(), socket)
        }
    }

    // MARK: Misbehaviour

    /// Asks for the end of its connection, and does not close it: the server's limits end that.
    private func holdAfterAnswer() -> Promise<Void> {
        hold(80, Array("GET / HTTP/1.1\r\nHost: server\r\nConnection: close\r\n\r\n".utf8))
            .then { [self] in readToEnd($0) }.asVoid()
    }

    override func misbehave() {
        // More than both kernels hold together, 384 KiB: the rest is with the server, or still here.
        let echoed = isWide && round.dice.happens(0.2) ? round.dice.element([400_000, 420_000, 500_000]) : 1000
        ignore(echoed, from: 7, [UInt8](repeating: 1, count: echoed))
        // Twice as much as both buffers of that port hold.
        let sent = isWide ? 400_000 : 1000
        ignore(sent, from: 82, Array("\(sent)\n".utf8))
        hold(80, Array("GET / HT".utf8)).cauterize()
        web.fetch("http://server/never").cauterize()
        web.webSocket("ws://server/chat").then { $0.receive() }.asVoid().cauterize()
    }

    override func close() {
        super.close()
        web.close()
    }
}
