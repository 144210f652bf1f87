import Promises
import Reactor
import ReactorHTTP
import ReactorIO
import SimulatedNetwork

/// A client of `ExampleServices`, which speaks their protocols itself.
final class ExampleClient: SoakClient {
    private let web: HTTPClient
    /// For names that no other session has.
    private var names = 0

    override init(_ round: SoakRound, _ host: SimulatedHost) {
        var options = HTTPClient.Options()
        options.connections = PoolLimits(perKey: 1 + round.dice.below(3), idleTimeout: .seconds(20))
        options.proxies = Proxies()
        web = host.run { HTTPClient(options) }
        super.init(round, host)
    }

    private func newName() -> String {
        names += 1
        return "\(host.name)-\(names)"
    }

    override func chooseSession() -> (String, () -> Promise<Void>) {
        let limit = Duration.seconds(Int64(5 + round.dice.below(100)))
        let sizes = chooseSizes()
        let kinds: [(String, ([Int]) -> Promise<Void>)] = [
            ("keys", keys), ("an expiry", { _ in self.expiry() }), ("subscribers", channel), ("topics", topic),
            ("fetches", fetches), ("a socket", chat),
        ]
        let (name, session) = round.dice.element(kinds)
        return ("\(name) of \(sizes)", { session(sizes).timeout(limit) })
    }

    override func probes() -> [SoakSession] {
        let sizes = chooseSizes()
        return [
            ("keys of \(sizes)", keys(sizes)), ("an expiry", expiry()), ("subscribers of \(sizes)", channel(sizes)),
            ("topics of \(sizes)", topic(sizes)), ("fetches of \(sizes)", fetches(sizes)), ("a socket", chat(sizes)),
        ]
    }

    override func lateProbes(isFirst: Bool) -> [SoakSession] { isFirst ? [("a silent client", beSilent())] : [] }

    /// Connects, and closes at the end of `talk`.
    private func with(_ port: Int, _ talk: @escaping (Connection) -> Promise<Void>) -> Promise<Void> {
        connect(port).then { connection in talk(connection).ensure { connection.close() } }
    }

    /// Sends a request, and expects an answer byte by byte.
    private func ask(_ connection: Connection, _ request: [UInt8], _ answer: [UInt8]) -> Promise<Void> {
        when(fulfilled: connection.write(request), connection.read(exactly: answer.count)).done { [self] _, bytes in
            if Array(bytes) == answer { return }
            let got = String(decoding: Array(bytes).prefix(60), as: UTF8.self)
            round.fault(
                "\(got.debugDescription) is the answer to \(String(decoding: request.prefix(60), as: UTF8.self))")
        }
    }

    // MARK: kv-server

    /// `*2\r\n$3\r\nGET\r\n…`
    private func command(_ words: [UInt8]...) -> [UInt8] {
        words.reduce(into: Array("*\(words.count)\r\n".utf8)) { $0 += bulk($1) }
    }

    private func command(_ words: String) -> [UInt8] {
        let words = words.split(separator: " ")
        return words.reduce(into: Array("*\(words.count)\r\n".utf8)) { $0 += bulk(Array($1.utf8)) }
    }

    private func bulk(_ word: [UInt8]) -> [UInt8] { Array("$\(word.count)\r\n".utf8) + word + [0x0D, 0x0A] }

    /// What was set is there, and each increment counts once.
    private func keys(_ sizes: [Int]) -> Promise<Void> {
        let name = newName()
        return with(6379) { [self] connection in
            each(sizes) { [self] index, size in
                let value = Self.pattern(size, from: index)
                let request =
                    command(Array("SET".utf8), Array(name.utf8), value) + command("GET \(name)")
                    + command("INCR \(name)n")
                return ask(connection, request, Array("+OK\r\n".utf8) + bulk(value) + Array(":\(index + 1)\r\n".utf8))
            }
        }
    }

    /// A key is gone after its time, however late that is.
    private func expiry() -> Promise<Void> {
        let name = newName()
        return with(6379) { [self] connection in
            ask(connection, command("SET \(name) x PX 5000"), Array("+OK\r\n".utf8))
                .then { after(.milliseconds(5001)) }
                .then { [self] in ask(connection, command("GET \(name)"), Array("$-1\r\n".utf8)) }
        }
    }

    /// A subscriber gets what is published, once and in order.
    private func channel(_ sizes: [Int]) -> Promise<Void> {
        let name = newName()
        let channel = bulk(Array(name.utf8))
        return with(6379) { [self] subscriber in
            let joined = Array("*3\r\n$9\r\nsubscribe\r\n".utf8) + channel + Array(":1\r\n".utf8)
            return ask(subscriber, command("SUBSCRIBE \(name)"), joined).then { [self] in
                with(6379) { [self] publisher in
                    each(sizes) { [self] index, size in
                        let message = Self.pattern(size, from: index)
                        let request = command(Array("PUBLISH".utf8), Array(name.utf8), message)
                        let arrived = Array("*3\r\n$7\r\nmessage\r\n".utf8) + channel + bulk(message)
                        return when(
                            fulfilled: ask(publisher, request, Array(":1\r\n".utf8)), ask(subscriber, [], arrived)
                        ).asVoid()
                    }
                }
            }
        }
    }

    private func beSilent() -> Promise<Void> {
        with(6379) { [self] connection in
            ask(connection, command("PING"), Array("+PONG\r\n".utf8)).then { [self] in awaitIdleEnd(connection) }
        }
    }

    private func awaitIdleEnd(_ connection: Connection) -> Promise<Void> {
        let began = round.network.now
        return connection.read().asPromise().done { [self] _ in
            let time = began.duration(to: round.network.now)
            if time < .seconds(28) || time > .seconds(32) {
                round.fault("what was idle for 30 s has ended after \(time)")
            }
        }
    }

    // MARK: mqtt-broker

    private func text(_ text: String) -> [UInt8] {
        [UInt8(text.utf8.count >> 8), UInt8(text.utf8.count & 0xFF)] + Array(text.utf8)
    }

    private func packet(_ first: UInt8, _ body: [UInt8]) -> [UInt8] {
        var (length, rest): ([UInt8], Int) = ([], body.count)
        repeat {
            length.append(UInt8(rest & 0x7F) | (rest > 0x7F ? 0x80 : 0))
            rest >>= 7
        } while rest > 0
        return [first] + length + body
    }

    /// A client that subscribes to its own topic gets each message once and in order, and an acknowledgement.
    private func topic(_ sizes: [Int]) -> Promise<Void> {
        let name = newName()
        return with(1883) { [self] connection in
            let hello = packet(0x10, text("MQTT") + [4, 2, 0, 20] + text(name))
            return ask(connection, hello, [0x20, 2, 0, 0])
                .then { [self] in ask(connection, packet(0x82, [0, 7] + text(name) + [1]), [0x90, 3, 0, 7, 1]) }
                .then { [self] in
                    each(sizes) { [self] index, size in
                        let number = [0, UInt8(index + 1)]
                        let message = packet(0x32, text(name) + number + Self.pattern(size, from: index))
                        let acknowledged = packet(0x40, number)
                        // In either order.
                        return when(
                            fulfilled: connection.write(message),
                            connection.read(exactly: message.count + acknowledged.count)
                        )
                        .done { [self] _, bytes in
                            let bytes = Array(bytes)
                            if bytes == message + acknowledged || bytes == acknowledged + message { return }
                            round.fault("a subscriber gets \(bytes.prefix(20)) instead of \(message.prefix(20))")
                        }
                    }
                }
        }
    }

    // MARK: http-server

    private func fetches(_ sizes: [Int]) -> Promise<Void> {
        each(sizes) { [self] index, size in
            let body = Self.pattern(size, from: index)
            let path = size == 1 ? "/" : size == 10 ? "/slow" : "/echo"
            let expected = ["/": Array("Hello, world!\n".utf8), "/slow": Array("At last\n".utf8)][path] ?? body
            let sent: RequestBody? = path == "/echo" ? .bytes(body) : nil
            return web.fetch("http://server\(path)", path == "/echo" ? .post : .get, body: sent)
                .then { response in response.body.bytes().map { (response.status, Array($0)) } }
                .done { [self] status, bytes in
                    if status.code == 200 && bytes != expected {
                        round.fault("\(path): \(bytes.count) bytes instead of \(size)")
                    }
                    if status.code != 200 && round.isCalm { round.fault("\(path): \(status)") }
                }
        }
    }

    private func chat(_ sizes: [Int]) -> Promise<Void> {
        web.webSocket("ws://server/socket", idle: .seconds(20)).then { [self] socket in
            each(sizes) { [self] index, size in
                let message = WebSocket.Message.bytes(Self.pattern(size, from: index))
                return socket.send(message).then { socket.receive() }.done { [self] answer in
                    guard let answer else { throw FetchError.endedEarly }
                    if answer != message { round.fault("another message came back than was sent") }
                }
            }.ensureThen { socket.close().recover { _ in .value } }
        }
    }

    // MARK: Misbehaviour

    override func misbehave() {
        hold(6379, Array("*3\r\n$3\r\nSET\r\n$".utf8)).cauterize()
        let value = Self.pattern(isWide ? 100_000 : 10)
        let set = command(Array("SET".utf8), Array("\(host.name)".utf8), value)
        let gets = [[UInt8]](repeating: command("GET \(host.name)"), count: 20).flatMap(\.self)
        ignore(5 + 20 * bulk(value).count, from: 6379, set + gets)
        hold(6379, command("SUBSCRIBE \(host.name)")).cauterize()
        hold(1883, [0x10, 200]).cauterize()
        hold(1883, packet(0x10, text("MQTT") + [4, 2, 0, 0] + text("")) + packet(0x82, [0, 7] + text("#") + [0]))
            .cauterize()
        hold(80, Array("POST /echo HTTP/1.1\r\nHost: server\r\nContent-Length: 10\r\n\r\nhalf".utf8)).cauterize()
        web.fetch("http://server/slow").cauterize()
    }

    override func close() {
        super.close()
        web.close()
    }

    private func each(_ sizes: [Int], _ from: Int = 0, _ body: @escaping (Int, Int) -> Promise<Void>) -> Promise<Void> {
        if from == sizes.count { return .value }
        return body(from, sizes[from]).then { [self] in each(sizes, from + 1, body) }
    }
}
