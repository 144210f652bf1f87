@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// Two ends with filters that do everything in any order, over a kernel that takes and gives any number of bytes.
struct FilterFuzzingTests {
    @Test(.network(turns: 100_000), arguments: 0..<24) func bothStreamsArriveWholeWhateverTheKernelTakesAndGives(
        seed: UInt64
    ) throws {
        var dice = SplitMix64(seed &* 0x9E37 &+ 1)
        let (receive, send) = (net.kernel.receive, net.kernel.send)
        let ends = try net.filteredEnds(RecordFilter(key: 3).chatting(seed), RecordFilter(key: 200).chatting(seed ^ 9))
        // Each call gets a part, or nothing for now.
        let most = [3, 100, 5000, 65536][Int(seed % 4)]
        net.kernel.receive = { fd, bytes, count in
            receive(fd, bytes, min(count, 1 + dice.below(most)))
        }
        net.kernel.send = { fd, bytes, count in
            if dice.once(in: 8) { return -Int(EAGAIN) }
            return send(fd, bytes, min(count, 1 + dice.below(most)))
        }
        let total = most == 3 ? 400 : 40_000
        let there = Party(ends.client, ends.server, total, seed)
        let back = Party(ends.server, ends.client, total, seed ^ 0xFF)
        try hang(when(fulfilled: there.run(), back.run()), timeout: patience)
        expect(there.received == pattern(total) && back.received == pattern(total))
        let closed = [ends.client.close(), ends.server.close()]
        hang(when(guarantees: closed))
    }
}

/// One direction of a connection: a writer and a reader with random choices.
private final class Party {
    private let source: Connection
    private let sink: Connection
    private let total: Int
    private var dice: SplitMix64
    private var written = 0
    var received: [UInt8] = []

    init(_ source: Connection, _ sink: Connection, _ total: Int, _ seed: UInt64) {
        self.source = source
        self.sink = sink
        self.total = total
        dice = SplitMix64(seed)
    }

    func run() -> Promise<Void> { when(fulfilled: write(), read()).asVoid() }

    private func write() -> Promise<Void> {
        if written == total { return source.shutdownWrite() }
        let count = min(total - written, dice.below(3) == 0 ? 1 + dice.below(9000) : 1 + dice.below(50))
        let bytes = pattern(count, from: written)
        written += count
        let promise: Promise<Void>
        switch dice.below(4) {
        case 0: promise = source.write(bytes)
        case 1: promise = source.write([Array(bytes.prefix(count / 2)), [], Array(bytes.dropFirst(count / 2))])
        case 2: promise = source.write(bytes.span.bytes)
        // Other writes could be sent between the two.
        default:
            let parts = [Array(bytes.prefix(1)), Array(bytes.dropFirst(1))]
            return forEach(parts) { self.source.write($0) }.then { self.write() }
        }
        if dice.below(3) > 0 { return promise.then { self.write() } }
        // Not awaited, and perhaps cancelled, which changes nothing.
        promise.cauterize()
        if dice.below(2) == 0 { promise.cancel() }
        return write()
    }

    private func read() -> Promise<Void> {
        let left = total - received.count
        if left == 0 {
            return sink.read().asPromise().done { outcome in expectEqual(outcome, .end) }
        }
        switch dice.below(5) {
        case 0:
            return sink.read(exactly: min(left, 1 + dice.below(3000))).then { self.take($0) }
        case 1:
            let cancelled = sink.read(exactly: left)
            cancelled.cancel()
            // All of them may have been here.
            if cancelled.isFulfilled { return cancelled.then { self.take($0) } }
            return after(.zero).then { self.read() }
        case 2:
            let chunks = sink.forEachChunk { chunk -> Promise<Void> in
                chunk.withUnsafeBytes { self.received += $0 }
                throw StopReading()
            }
            return chunks.then { self.read() }
        case 3:
            return sink.readFrame(Some(1 + dice.below(64))).then { self.take($0 ?? []) }
        default:
            return sink.receive(upTo: 1 + dice.below(10_000)).then { self.take($0) }
        }
    }

    private func take(_ bytes: [UInt8]) -> Promise<Void> {
        received += bytes
        return read()
    }
}

/// At most as many bytes as are available.
private struct Some: FrameDecoder {
    let most: Int

    init(_ most: Int) { self.most = most }

    func decode(_ bytes: RawSpan) -> DecodedFrame<[UInt8]> {
        if bytes.byteCount == 0 { return .incomplete(missing: 1) }
        let count = min(most, bytes.byteCount)
        return .frame(bytes.withUnsafeBytes { Array($0[..<count]) }, consumed: count)
    }
}

extension RecordFilter {
    /// This filter, which pings now and then, and makes the peer hold its writes for a while.
    fileprivate func chatting(_ seed: UInt64) -> RecordFilter {
        var dice = SplitMix64(seed)
        var isHolding = false
        onStep = { step, output in
            // Two that hold each other's writes could not release them with a write.
            if step == .receive && isHolding {
                isHolding = false
                output.send(Self.record(.release))
            }
            guard step == .write || step == .end else { return }
            if dice.once(in: 4) { output.send(Self.record(.ping)) }
            if isHolding && (step == .end || dice.once(in: 2)) {
                isHolding = false
                output.send(Self.record(.release))
            } else if step == .write && dice.once(in: 6) {
                isHolding = true
                output.send(Self.record(.hold))
            }
        }
        return self
    }
}
