import Glibc
import Promises
import Reactor
import ReactorIO
import SimulatedNetwork

/// A client of `StreamServices`: sends a text, ends, and gets the same text, in each of the ways that the library has for both.
final class StreamClient: SoakClient {
    override func chooseSession() -> (String, () -> Promise<Void>) {
        let way = round.dice.element(StreamServices.Way.allCases)
        let size = chooseSizes()[0]
        let limit = Duration.seconds(Int64(5 + round.dice.below(100)))
        return ("\(size) bytes by \(way)", { [self] in talk(way, size, limit) })
    }

    override func probes() -> [SoakSession] {
        StreamServices.Way.allCases.map { way in
            let size = chooseSizes()[0]
            return ("\(size) bytes by \(way)", talk(way, size, nil))
        }
    }

    override func misbehave() {
        let count = isWide ? 400_000 : 1000
        for way in [StreamServices.Way.chain, .chunks, .pipe] { ignore(count, from: way.rawValue, text(count)) }
        for way in [StreamServices.Way.lines, .frames, .whole, .async] {
            hold(way.rawValue, text(1000).dropLast(1)).cauterize()
        }
    }

    /// Lines that show their position, from any line on.
    private func text(_ count: Int) -> [UInt8] {
        let start = round.dice.below(1000)
        return Self.lines[start..<start + count - 1] + [0x0A]
    }

    private static let lines = (0..<600_000).map { $0 % 61 == 60 ? 0x0A : UInt8(0x61 + $0 % 23) }

    /// At most some hundred pieces of a text.
    private func pieceSize(_ text: [UInt8]) -> Int {
        text.count / 200 + 1 + round.dice.below(round.dice.element([5, 3000, 100_000]))
    }

    private func talk(_ way: StreamServices.Way, _ size: Int, _ limit: Duration?) -> Promise<Void> {
        let (text, isCalm) = (text(size), round.isCalm)
        return connect(way.rawValue).then { [self] connection in
            let talk = when(
                fulfilled: say(text, connection).then { connection.shutdownWrite() }, hear(text, connection)
            ).done { [self] _, count in
                if isCalm && count != size { round.fault("\(count) of \(size) bytes by \(way), and the end") }
            }
            return round.disturbed(connection, limit.map { talk.timeout($0) } ?? talk).ensure { connection.close() }
        }
    }

    private func say(_ text: [UInt8], _ connection: Connection) -> Promise<Void> {
        let most = pieceSize(text)
        var rest = text[...]
        func part() -> [UInt8]? {
            if rest.isEmpty { return nil }
            defer { rest = rest.dropFirst(most) }
            return Array(rest.prefix(most))
        }
        func next() -> Promise<Void> { part().map { connection.write($0).then { next() } } ?? .value }
        func produce() -> Promise<Void> {
            var last = Promise<Void>.value
            repeat {
                guard let part = part() else { return last }
                last.cauterize()
                last = connection.write(part)
            } while connection.isWritable
            return when(fulfilled: last, connection.writable()).then { _ in produce() }
        }
        switch round.dice.below(4) {
        case 0: return next()
        case 1: return forEach(sequence(state: ()) { _ in part() }) { connection.write($0) }
        case 2:
            connection.writeQueueLimit = .max
            return when(fulfilled: sequence(state: ()) { _ in part() }.map { connection.write($0) })
        default: return produce()
        }
    }

    /// Returns how much came before the end, of what was sent and in its order.
    private func hear(_ text: [UInt8], _ connection: Connection) -> Promise<Int> {
        var count = 0
        func check(_ bytes: UnsafeRawBufferPointer) {
            let isSent = text.withUnsafeBytes {
                bytes.isEmpty
                    || bytes.count <= text.count - count
                        && memcmp(bytes.baseAddress!, $0.baseAddress! + count, bytes.count) == 0
            }
            if !isSent { round.fault("other bytes came back than were sent, at \(count)") }
            count += bytes.count
        }
        let limit = pieceSize(text)
        func next() -> Promise<Void> {
            connection.receive(upTo: limit).then { bytes -> Promise<Void> in
                bytes.withUnsafeBytes(check)
                return bytes.isEmpty ? .value : next()
            }
        }
        func frame() -> Promise<Void> {
            connection.read(exactly: limit).then { bytes -> Promise<Void> in
                bytes.withUnsafeBytes(check)
                return frame()
            }
        }
        let all: Promise<Void>
        switch round.dice.below(4) {
        case 0: all = connection.forEachChunk { $0.withUnsafeBytes(check) }
        case 1:
            all = frame().recover(policy: .allErrors) { error -> Promise<Void> in
                guard case StreamError.endedEarly = error else { throw error }
                return next()
            }
        case 2: all = connection.forEachLine { Array(($0 + "\n").utf8).withUnsafeBytes(check) }
        default: all = next()
        }
        return all.map { count }
    }
}
