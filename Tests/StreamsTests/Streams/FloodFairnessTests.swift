@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// A connection that never stops sending lets the others have their turns. Counted in turns, and in virtual time.
struct FloodFairnessTests {
    @Test(.pair(.virtual, turns: 2000), arguments: [false, true]) func fiftyPingsAndATimerPassAFirehose(isChunked: Bool)
        throws
    {
        let (flooded, firehose) = (connection, peer)
        let busy = net.ledger.accepted[0]
        // An unread byte keeps it ready, and a read always gets as much as it requests.
        try firehose.send("x")
        awaitArrival(of: POLLIN, at: busy)
        var reads = 0
        net.kernel.receive = { [real = net.kernel.receive] in
            if $0 != busy { return real($0, $1, $2) }
            reads += 1
            return $2
        }
        var sunk = 0
        func sink() -> Promise<Void> {
            flooded.receive().then { bytes -> Promise<Void> in
                sunk += bytes.count
                return sink()
            }
        }
        let flood = isChunked ? flooded.forEachChunk { sunk += $0.byteCount } : sink()
        let pings = try (0..<50).map { _ in try net.pair() }
        for (connection, _) in pings { echo(connection).cauterize() }
        try net.loop.turn(.poll)
        for (number, (_, peer)) in pings.enumerated() {
            try peer.send([UInt8(number)])
            awaitArrival(of: POLLIN, at: net.ledger.accepted[1 + number])
        }

        var ticks = 0
        let timer = net.loop.schedule(every: .milliseconds(5)) { ticks += 1 }
        let sent = net.calls(.send)
        var turns = 0
        while net.calls(.send) < sent + 50 && turns < 100 {
            net.clock.advance(by: .milliseconds(5))
            let before = reads
            try net.loop.turn(.poll)
            turns += 1
            // One of 64 KiB per turn, and it does get that.
            expectEqual(reads, before + 1)
            expectEqual(ticks, turns, "the timer is late")
        }
        expect(turns <= 2, "an idle loop would have needed one")
        for (number, (_, peer)) in pings.enumerated() { expectEqual(try peer.receive(), [UInt8(number)]) }
        expect(sunk >= (reads - 1) * 65536)
        timer.cancel()
        flooded.abort()
        expectEqual(try rejection(of: flood), ECANCELED)
        for (_, peer) in pings { peer.close() }
        try net.loop.run()
    }
}
