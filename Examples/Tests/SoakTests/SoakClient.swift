import Promises
import Reactor
import ReactorIO
import SimulatedNetwork

typealias SoakSession = (name: String, promise: Promise<Void>)

/// A client machine of a soak: subclasses say what runs there. All they override is called on the machine.
class SoakClient {
    unowned let round: SoakRound
    let host: SimulatedHost
    let link: SimulatedLink
    /// The sessions of the time in which things fail.
    private(set) var sessions: [SoakSession] = []
    private var held: [Connection] = []
    /// Connections that are read only after the drain, with the bytes that they were promised.
    private var unread: [(connection: Connection, promised: Int)] = []

    init(_ round: SoakRound, _ host: SimulatedHost) {
        self.round = round
        self.host = host
        link = round.network.link(host, round.server)
    }

    // MARK: For subclasses

    /// A session that begins in the first seconds.
    func chooseSession() -> (String, () -> Promise<Void>) { ("nothing", { .value }) }
    /// What must succeed when nothing fails any more.
    func probes() -> [SoakSession] { [] }
    /// Likewise, when nobody else uses the servers. `isFirst`: for a single client.
    func lateProbes(isFirst: Bool) -> [SoakSession] { [] }
    /// Leaves sessions unfinished, which the servers' drain ends.
    func misbehave() {}
    func close() {
        for connection in held { connection.close() }
        (held, unread, sessions) = ([], [], [])
    }

    /// Connects, as a session that must not take longer than its limit.
    final func connect(_ port: Int) -> Promise<Connection> {
        let began = round.network.now
        return ReactorIO.connect(to: "server:\(port)", timeout: .seconds(40))
            .ensure { [self] in round.expectInTime(host, began, .seconds(40), "a connect") }
            .map { [self] in round.note($0) }
    }

    /// Sends `bytes`, and does not close the connection before the end.
    final func hold(_ port: Int, _ bytes: [UInt8] = []) -> Promise<Connection> {
        connect(port).then { [self] connection in
            held.append(connection)
            if !bytes.isEmpty { connection.write(bytes).cauterize() }
            return .value(connection)
        }
    }

    /// Sends `bytes`, and reads the answer only after the drain: as many bytes as promised, or an error.
    final func ignore(_ promised: Int, from port: Int, _ bytes: [UInt8]) {
        hold(port, bytes).done { [self] in unread.append(($0, promised)) }.cauterize()
    }

    final func readToEnd(_ connection: Connection, _ count: Int = 0) -> Promise<(count: Int, error: SystemError?)> {
        connection.read().then { [self] outcome -> Promise<(count: Int, error: SystemError?)> in
            switch outcome {
            case .bytes(let bytes): readToEnd(connection, count + bytes.count)
            case .end: .value((count, nil))
            case .failed(let error): .value((count, error))
            }
        }
    }

    // MARK: For the round

    final func startSessions() {
        host.run {
            for _ in 0..<1 + round.dice.below(6) {
                let start = Duration.milliseconds(Int64(round.dice.below(20_000)))
                let (name, session) = chooseSession()
                sessions.append((name, after(start).then { session() }))
            }
        }
    }

    final func startProbes() -> [SoakSession] { host.run { probes() } }
    final func startLateProbes(isFirst: Bool) -> [SoakSession] { host.run { lateProbes(isFirst: isFirst) } }

    /// Reads what the servers have sent before they have drained.
    final func comeToReason() -> [SoakSession] {
        host.run {
            let reads = held.filter { connection in !unread.contains { $0.connection === connection } }
                .map { ("a client that reads at last", readToEnd($0).asVoid()) }
            return reads
                + unread.map { connection, promised in
                    let read = readToEnd(connection).done { [self] end in
                        // On a slow link the drain may be earlier than what was asked for.
                        if end.error != nil || end.count == promised || end.count == 0 && !isWide { return }
                        round.fault("\(connection) ends in order after \(end.count) of \(promised) bytes")
                    }
                    return ("a client that reads at last", read)
                }
        }
    }

    // MARK: Sizes

    /// Whether the link takes as much as fills the buffers of both kernels, in a time that is short for the test too.
    final var isWide: Bool { link.bandwidth == nil && [.whole, .segments(1448)].contains(link.cut) }

    final func chooseSizes() -> [Int] {
        let large = isWide ? (round.dice.happens(0.1) ? 150_000 : 20_000) : link.cut == .everyByte ? 500 : 3000
        return (0..<1 + round.dice.below(5)).map { _ in round.dice.element([1, 10, 500, min(large, 3000), large]) }
    }

    /// Bytes that differ from their neighbours.
    static func pattern(_ size: Int, from start: Int = 0) -> [UInt8] { Array(bytes[start..<start + size]) }
    private static let bytes = (0..<600_000).map { UInt8(truncatingIfNeeded: $0 % 251) }
}
