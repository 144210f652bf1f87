import Promises
import Reactor
import ReactorIO
import SimulatedNetwork

/// Echoes, in each of the ways that the library has. While things fail, some connections are disturbed from this side.
final class StreamServices: SoakServices {
    /// Each on its own port. `whole` reads everything first, and leaves the answer to the end of the connection.
    enum Way: Int, CaseIterable { case chain = 1, chunks, lines, frames, pipe, whole, async, accepts }

    private let maxConnections: Int

    override init(_ round: SoakRound) {
        maxConnections = round.dice.happens(0.5) ? 1 + round.dice.below(6) : .max
        super.init(round)
    }

    override func listen() throws {
        for way in Way.allCases {
            let listener = add(try Listener.bind("0.0.0.0:\(way.rawValue)"))
            let options = ServeOptions(maxConnections: maxConnections)
            switch way {
            case .accepts: acceptNext(listener)
            case .async:
                listener.serveAsync(options, onError: { _, _ in }) { [self] connection in
                    try await counted(handle(connection, .async)).value
                }.cauterize()
            default:
                listener.serve(options, onError: { _, _ in }) { [self] connection in counted(handle(connection, way)) }
                    .cauterize()
            }
        }
    }

    /// One `accept` after another, some of them cancelled.
    private func acceptNext(_ listener: Listener) {
        let accepted = listener.accept()
        let isCancelled = !round.isCalm && round.dice.happens(0.3)
        let timer = isCancelled ? EventLoop.current.schedule(after: .seconds(5)) { accepted.cancel() } : nil
        accepted.done { [self] connection in
            counted(handle(connection, .accepts)).ensureThen { connection.close() }.cauterize()
            acceptNext(listener)
        }.catch(policy: .allErrors) { [self] in if $0.isCancelled { acceptNext(listener) } }
            .finally { timer?.cancel() }
    }

    private func handle(_ connection: Connection, _ way: Way) -> Promise<Void> {
        _ = round.note(connection, isOfServer: true)
        if round.dice.happens(0.3) { connection.writeWatermarks = (round.dice.below(1000), round.dice.below(3000)) }
        return round.disturbed(connection, echo(connection, way))
    }

    private func echo(_ connection: Connection, _ way: Way) -> Promise<Void> {
        switch way {
        case .chain, .accepts: return echoByChain(connection, upTo: 1 + round.dice.below(3000))
        case .chunks: return connection.forEachChunk { connection.write($0) }
        case .lines, .async: return connection.forEachLine { connection.write($0 + "\n") }
        case .frames: return echoByFrames(connection, of: 1 + round.dice.below(2000))
        case .whole:
            var all: [UInt8] = []
            return connection.forEachChunk { chunk in chunk.withUnsafeBytes { all += $0 } }
                .done { connection.write(all).cauterize() }
        case .pipe: return pipe(from: connection, to: connection).asVoid()
        }
    }

    private func echoByChain(_ connection: Connection, upTo limit: Int) -> Promise<Void> {
        connection.receive(upTo: limit).then { bytes -> Promise<Void> in
            bytes.isEmpty ? .value : connection.write(bytes).then { self.echoByChain(connection, upTo: limit) }
        }
    }

    private func echoByFrames(_ connection: Connection, of count: Int) -> Promise<Void> {
        func next() -> Promise<Void> {
            connection.read(exactly: count).then { connection.write($0) }.then { next() }
        }
        return next().recover(policy: .allErrors) { error -> Promise<Void> in
            guard case StreamError.endedEarly(_, let got) = error else { throw error }
            return got == 0 ? .value : connection.read(exactly: got).then { connection.write($0) }
        }
    }
}

extension SoakRound {
    /// `work` on a connection that something disturbs from its own side, unless nothing may fail any more.
    func disturbed(_ connection: Connection, _ work: Promise<Void>) -> Promise<Void> {
        if isCalm || dice.happens(0.7) { return work }
        let time = Duration.milliseconds(Int64(1 + dice.below(20_000)))
        let disturb: () -> Void
        switch dice.below(8) {
        case 0:
            connection.idleTimeout = time
            return work
        case 1: return work.timeout(time)
        case 2: disturb = { connection.abort() }
        case 3: disturb = { connection.close() }
        case 4: disturb = { connection.close(linger: .zero) }
        case 5: disturb = { connection.shutdownWrite().cauterize() }
        default: disturb = { work.cancel() }
        }
        let timer = EventLoop.current.schedule(after: time, disturb)
        return work.ensure { timer.cancel() }
    }
}
