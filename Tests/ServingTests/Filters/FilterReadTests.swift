@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

struct FilterReadTests {
    @Test(.network) func whatALeavingFilterHasDeliveredComesBeforeWhatTheKernelHas() throws {
        let filter = RecordFilter()
        let (connection, peer) = try net.filteredPair(filter)
        var seen: [UInt8] = []
        let all = connection.forEachChunk { chunk in chunk.withUnsafeBytes { seen += $0 } }
        try net.loop.turn(.poll)
        try peer.send("late")
        peer.end()
        // More jobs than a turn runs before it polls: the job that calls the body is after them.
        for _ in 0..<2000 { Guarantee.value(()).done {} }
        filter.onStep = { step, output in
            if step == .write {
                output.deliver(Array("early, ".utf8))
                output.removeFilter()
            }
        }
        connection.write("x").cauterize()
        try net.loop.turn(.poll)
        try hang(all, timeout: patience)
        expectEqual(String(decoding: seen, as: UTF8.self), "early, late")
    }

    @Test(.network, arguments: [0, 3, 7]) func anEndWithoutAnEndRecordIsATypedErrorBehindTheBytes(cut: Int) throws {
        for form in 0..<7 {
            let (connection, peer) = try net.filteredPair()
            try peer.send(RecordFilter.data(Array("ab".utf8)) + RecordFilter.data([1, 2], at: 2).prefix(cut))
            peer.end()
            if cut < 7 { expectEqual(try hang(connection.read(exactly: 1), timeout: patience), [97]) }
            let rest: Promise<Void>
            switch form {
            case 0: rest = connection.readLine().asVoid()
            case 1: rest = connection.read(exactly: 9).asVoid()
            case 2: rest = connection.forEachChunk { _ in }
            case 3: rest = connection.forEachLine { _ in }
            case 4: rest = readToEnd(connection).asVoid()
            case 5: rest = Promise(on: net.loop) { for try await _ in connection.chunks {} }
            default:
                let failure = failed(EPROTO)
                var outcome = try hang(connection.read(), timeout: patience)
                while case .bytes = outcome { outcome = try hang(connection.read(), timeout: patience) }
                rest = Promise(error: ConnectionFilterError.truncated)
                expect(outcome == failure && connection.read().settledValue == failure)
            }
            expect(rest, failsWith: ConnectionFilterError.truncated)
            expect(connection.write("x"), failsWith: ConnectionFilterError.truncated)
            expect(connection.shutdownWrite(), failsWith: ConnectionFilterError.truncated)
            let closed = connection.closed
            connection.close()
            let end = hang(closed)
            expectEqual(end, .failed(SystemError(.receive, EPROTO)))
        }
    }

    @Test(.filteredPair) func nothingIsReadWhileNoReadWaits() throws {
        try peer.send(RecordFilter.data(pattern(10_000)))
        let begun = net.calls(.receive)
        for _ in 0..<5 { try net.loop.turn(.poll) }
        expect(net.calls(.receive) == begun && !net.loop.isAlive)
        expectEqual(try hang(connection.read(upTo: 1), timeout: patience), .bytes(Array(pattern(1))))
        expectEqual(net.calls(.receive), begun + 1)
        for _ in 0..<5 { try net.loop.turn(.poll) }
        expect(net.calls(.receive) == begun + 1 && connection.bufferedByteCount == 9999)
    }

    @Test(.filteredPair(.virtual, turns: 20_000)) func aPeerThatPingsAndNeverReadsIsNotReadAnyMore() throws {
        let budget = net.limitSends(to: 0)
        let read = connection.receive()
        let pings = RecordFilter.pings(4000)
        for _ in 0..<8 {
            try peer.send(pings)
            for _ in 0..<3 { try net.loop.turn(.poll) }
        }
        let (queued, received) = (connection.queuedBytes, connection.bytesReceived)
        expect(queued >= 60_000 && queued < 8 * pings.count)
        try peer.send(pings)
        for _ in 0..<5 { try net.loop.turn(.poll) }
        expect(connection.bytesReceived == received && connection.queuedBytes == queued)
        // When the peer reads, it is read from again.
        budget.remaining = .max
        try net.loop.run(until: { connection.queuedBytes == 0 && connection.bytesReceived > received })
        try peer.send(RecordFilter.data([42]))
        expectEqual(try hang(read, timeout: patience), [42])
    }

    @Test(.filteredPair(.virtual), arguments: [true, false]) func neitherRecordsNorPartsOfThemProlongAFrame(
        inRecords: Bool
    ) throws {
        connection.frameTimeouts = FrameTimeouts(frame: .seconds(10))
        let begin = net.loop.now
        let line = connection.readLine()
        try net.deliver(RecordFilter.data(Array("ab".utf8)), from: peer)
        let rest = pattern(20)
        let record = RecordFilter.data(rest, at: 2)
        for index in 0..<9 {
            try net.loop.turn(.poll)
            hang(after(.seconds(1)))
            try net.deliver(inRecords ? RecordFilter.data([rest[index]], at: 2 + index) : [record[index]], from: peer)
        }
        expect(line, failsWith: StreamError.timedOut(got: inRecords ? 11 : 2))
        expectEqual(begin.duration(to: net.loop.now), .seconds(10))
    }

    @Test(.filteredPair) func anEndRecordIsThePeersEndForAWatch() throws {
        let (gone, reset) = (connection.peerGone(), connection.peerGone(ignoringHalfClose: true))
        try peer.send(RecordFilter.record(.end))
        expectEqual(try hang(connection.read(), timeout: patience), .end)
        expect(gone.settledValue == .ended && reset.isPending)
        expectEqual(connection.peerGone().settledValue, .ended)
        connection.abort()
        expect(reset.asPromise().isCancelled)
    }
}
