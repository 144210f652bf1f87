@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// Virtual time: sent bytes have arrived before the clock moves.
struct ReadRateTests {
    private var clock: VirtualClock { net.clock }

    init() { Fixture.current?.pair?.connection.readRate = 1000 }

    enum Form: CaseIterable { case read, pieces, exactly, line, lines, frame, frames, lentFrames, chunks }

    /// Lines of 50 bytes, the last one perhaps shorter.
    private func lines(_ count: Int) -> [UInt8] {
        (1...count).map { $0 % 50 == 0 || $0 == count ? 0x0A : 0x61 }
    }

    private func limitedPair(filtered: Bool) throws -> (Connection, Peer) {
        let (connection, peer) = filtered ? try net.filteredPair() : try net.pair()
        connection.readRate = 1000
        return (connection, peer)
    }

    private func time(_ body: () throws -> Void) rethrows -> Duration {
        let began = clock.now
        try body()
        return began.duration(to: clock.now)
    }

    /// Begins a read that must wait: 1,500 bytes have been sent, and 1,000 received.
    private func pausedRead(_ connection: Connection, _ peer: Peer) throws -> Guarantee<ReadOutcome> {
        try net.deliver(lines(1500), from: peer)
        expectEqual(count(hang(connection.read())), 1000)
        let read = connection.read()
        for _ in 0..<3 { try net.loop.turn(.poll) }
        expect(read.isPending)
        return read
    }

    private func count(_ outcome: ReadOutcome?) -> Int? {
        if case .bytes(let bytes)? = outcome { bytes.count } else { nil }
    }

    private func receive(_ count: Int, as form: Form, from connection: Connection) -> Promise<[UInt8]> {
        var got: [UInt8] = []
        func all(_ read: @escaping () -> Promise<[UInt8]>) -> Promise<[UInt8]> {
            if got.count >= count { return .value(got) }
            return read().then { bytes -> Promise<[UInt8]> in
                got += bytes
                return all(read)
            }
        }
        func keep(_ bytes: [UInt8]) throws {
            got += bytes
            if got.count >= count { throw StopReading() }
        }
        let decoder = DelimiterDecoder("\n")
        switch form {
        case .read: return all { connection.receive() }
        case .pieces: return all { connection.receive(upTo: 64) }
        case .exactly: return connection.read(exactly: count)
        case .line: return all { connection.readLine().map { Array((($0 ?? "") + "\n").utf8) } }
        case .lines: return connection.forEachLine { try keep(Array(($0 + "\n").utf8)) }.map { got }
        case .frame: return all { connection.readFrame(decoder).map { ($0 ?? []) + [0x0A] } }
        case .frames: return connection.forEachFrame(decoder) { frame, _ in try keep(frame + [0x0A]) }.map { got }
        case .lentFrames:
            return connection.forEachFrame(decoder) { try keep([UInt8]($1.rest())) }.map { got }
        case .chunks: return connection.forEachChunk { try keep([UInt8]($0)) }.map { got }
        }
    }

    @Test(.network(.virtual), arguments: Form.allCases, [false, true]) func itHoldsForEachFormOfReads(
        form: Form, filtered: Bool
    ) throws {
        let (connection, peer) = try limitedPair(filtered: filtered)
        // The bytes of a record's head count.
        let bytes = lines(filtered ? 2995 : 3000)
        try net.deliver(filtered ? RecordFilter.data(bytes) : bytes, from: peer)
        let before = connection.bytesReceived
        let reading = receive(bytes.count, as: form, from: connection)
        let time = try time { expectEqual(try hang(reading), bytes) }
        // The last of the small pieces waits for more than it takes.
        expect(time >= .seconds(2) && time < .milliseconds(form == .pieces ? 2100 : 2001), "\(time)")
        expectEqual(connection.bytesReceived - before, 3000)
    }

    @Test(.pair(.virtual)) func aPeerThatWasSilentMayCatchUpWithASecond() throws {
        let read = try pausedRead(connection, peer)
        try net.deliver(lines(1500), from: peer)
        hang(after(.seconds(10)))
        expectEqual(count(read.settledValue), 100)
        expectEqual(time { expectEqual(count(hang(connection.read())), 1000) }, .zero)
        hang(after(.milliseconds(300)))
        expectEqual(time { expectEqual(count(hang(connection.read())), 300) }, .zero)
        expectEqual(time { expectEqual(count(hang(connection.read())), 100) }, .milliseconds(100))
    }

    @Test(
        .pair(.virtual),
        arguments: [(10_000, 100, 500), (100, 100, 10), (nil, 50, 500), (0, 50, 500)] as [(Int?, Int64, Int)])
    func itCanBeChangedInAPause(rate: Int?, milliseconds: Int64, bytes: Int) throws {
        let began = clock.now
        let read = try pausedRead(connection, peer)
        hang(after(.milliseconds(50)))
        expect(read.isPending)
        connection.readRate = rate
        expectEqual(connection.readRate, rate)
        expectEqual(count(hang(read)), bytes)
        expectEqual(began.duration(to: clock.now), .milliseconds(milliseconds))
    }

    @Test(.pair(.virtual)) func anIdleTimeOutAndARateDoNotEndEachOther() throws {
        connection.idleTimeout = .seconds(1)
        connection.idleTimeout = nil
        let read = try pausedRead(connection, peer)
        expectEqual(time { expectEqual(count(hang(read)), 100) }, .milliseconds(100))
        connection.idleTimeout = .seconds(1)
        connection.readRate = nil
        expectEqual(count(hang(connection.read())), 400)
        hang(after(.milliseconds(900)))
        try net.deliver([1], from: peer)
        expectEqual(hang(connection.read()), .bytes([1]))
        expectEqual(time { expectEqual(hang(connection.read()), failed(ETIMEDOUT)) }, .seconds(1))
    }

    @Test(.pair(.virtual)) func aReadCanBeCancelled() throws {
        let read = try pausedRead(connection, peer)
        read.cancel()
        expect(net.turns { net.settle(.milliseconds(50)) } <= 4)
        let next = connection.read()
        expectEqual(time { expectEqual(count(hang(next)), 100) }, .milliseconds(50))
    }

    @Test(.network(.virtual), arguments: [false, true]) func aReleaseAndAnAbortCloseAtOnce(aborts: Bool) throws {
        func pausedPeer() throws -> Peer {
            let (connection, peer) = try net.pair()
            connection.readRate = 1000
            let read = try pausedRead(connection, peer)
            if aborts { connection.abort() } else { read.cancel() }
            expectEqual(read.settledValue, aborts ? failed(ECANCELED) : nil)
            return peer
        }
        let peer = try pausedPeer()
        expectEqual(net.loop.nextDeadline, nil)
        expectEqual(time { expectEqual(peer.failureOfReading(), ECONNRESET) }, .zero)
    }

    @Test(.network(.virtual), arguments: [false, true]) func aCloseIsNotPaused(filtered: Bool) throws {
        let (connection, peer) = try limitedPair(filtered: filtered)
        try net.deliver(filtered ? RecordFilter.data(lines(5000)) : lines(5000), from: peer)
        let reading = connection.read(exactly: 5000)
        for _ in 0..<5 { try net.loop.turn(.poll) }
        let closed = connection.close()
        peer.end()
        expectEqual(time { hang(closed) }, .zero)
        expectEqual(code(reading), ECANCELED)
        expectEqual(peer.failureOfReading(), nil)
    }

    @Test(.pair(.virtual), arguments: [false, true]) func aResetIsNoticedAtOnceBehindTheLastBytes(isWatched: Bool)
        throws
    {
        let read = try pausedRead(connection, peer)
        let gone = isWatched ? connection.peerGone() : nil
        peer.reset()
        awaitArrival(of: POLLHUP, at: net.ledger.accepted[0])
        let waited = time {
            expectEqual(count(hang(read)), 500)
            expectEqual(hang(connection.read()), failed(ECONNRESET))
        }
        expectEqual(waited, .zero)
        if let gone { expectEqual(hang(gone), .failed(SystemError(.receive, ECONNRESET))) }
    }

    @Test(.pair(.virtual)) func theEndComesBehindTheLastBytes() throws {
        try net.deliver(lines(1500), from: peer)
        peer.end()
        expectEqual(try hang(readToEnd(connection)), lines(1500))
    }

    @Test(.pair(.virtual)) func itIsNotIdle() throws {
        connection.idleTimeout = .milliseconds(30)
        try net.deliver(lines(1500), from: peer)
        expectEqual(time { expectEqual(try? hang(connection.read(exactly: 1500)).count, 1500) }, .milliseconds(500))
        expectEqual(time { expectEqual(hang(connection.read()), failed(ETIMEDOUT)) }, .milliseconds(30))
    }

    @Test(
        .pair(.virtual),
        arguments: [FrameTimeouts(idle: .seconds(1), frame: .seconds(1)), FrameTimeouts(message: .seconds(1))])
    func itCountsForNoTimeLimitOfAFrame(limits: FrameTimeouts) throws {
        connection.frameTimeouts = limits
        let line = [UInt8](repeating: 0x61, count: 2999)
        try net.deliver(line + [0x0A], from: peer)
        let reading = connection.readLine()
        expectEqual(try time { expectEqual(try hang(reading)?.utf8.count, 2999) }, .seconds(2))
        // Half a line, and silence, which does count.
        try net.deliver(Array(line[..<300]), from: peer)
        let half = connection.readLine()
        expectEqual(try time { expectEqual(try rejection(of: half), nil) }, .milliseconds(1300))
        expectEqual(half.error as? StreamError, .timedOut(got: 300))
    }

    @Test(.pair(.virtual, turns: 4000)) func writesGoOn() throws {
        let read = try pausedRead(connection, peer)
        connection.writeQueueLimit = .max
        let bytes = [UInt8](repeating: 7, count: 24 << 20)
        let write = connection.write(bytes)
        expect(write.isPending)
        var received = 0
        while received < bytes.count {
            received += try peer.receive().count
            try net.loop.turn(.poll)
        }
        try hang(write)
        expect(read.isPending)
        expectEqual(connection.bytesReceived, 1000)
        expectEqual(time { expectEqual(count(hang(read)), 100) }, .milliseconds(100))
    }

    @Test(.listener(.virtual)) func aDrainWaitsForWhatHasArrived() throws {
        let served = listener.serve { connection -> Promise<Void> in
            connection.readRate = 1000
            return connection.forEachLine { connection.write("\($0)\n") }
        }
        let peer = try Peer(to: listener.localAddress, sending: lines(3000))
        hang(after(.seconds(1)))
        let result = hang(listener.drain(deadline: .seconds(60)))
        expectEqual([result.idle, result.aborted], [1, 0])
        expectEqual(try peer.receive(exactly: 3000), lines(3000))
        try hang(served)
    }
}
