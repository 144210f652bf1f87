@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// Filters that stall: nothing that waits for them may wait forever.
struct FilterStallTests {
    @Test(.filteredPair) func aFailureOfTheFilterEndsTheWaitForRoom() throws {
        net.limitSends(to: 0)
        connection.writeWatermarks = (low: 10, high: 100)
        let (write, read) = (connection.write(pattern(200)), connection.receive())
        let writable = connection.writable()
        expect(writable.isPending)
        try peer.send([0xEE, 0, 0, 0, 0])
        expect(read, failsWith: RecordFilter.Flaw.unknownRecord(0xEE))
        expect(write.error != nil && writable.isFulfilled, "the next write reports the reason")
        expect(connection.queuedBytes > 100, "the alert follows what was queued")
        connection.writeWatermarks = (low: 10, high: 100)
        expect(connection.writable().isFulfilled && !connection.isWritable)
        expect(connection.write("x"), failsWith: RecordFilter.Flaw.unknownRecord(0xEE))
    }

    @Test(.network) func aWriteInWhichTheFilterFailsLeavesNoCongestion() throws {
        let filter = RecordFilter()
        let (connection, _) = try net.filteredPair(filter)
        net.limitSends(to: 0)
        connection.writeWatermarks = (low: 10, high: 100)
        connection.write(pattern(50)).ignoringErrors()
        filter.onStep = { step, output in
            output.send(pattern(100))
            throw RecordFilter.Flaw.injected(step)
        }
        expect(connection.write("x"), failsWith: RecordFilter.Flaw.injected(.write))
        expect(connection.writable().isFulfilled)
    }

    @Test(.network(.virtual, turns: 20_000)) func theIdleTimeoutEndsTheQueueOfAFilterThatHasFailed() throws {
        let (connection, peer) = try net.filteredPair(receiveBuffer: 4096)
        try connection.set(.sendBuffer, to: 4096)
        connection.idleTimeout = .seconds(60)
        let (write, read) = (connection.write(pattern(8 << 20)), connection.receive())
        try peer.send([0xEE, 0, 0, 0, 0])
        expect(read, failsWith: RecordFilter.Flaw.unknownRecord(0xEE))
        expect(write.error != nil && connection.queuedBytes > 0 && net.loop.isAlive)
        hang(after(.seconds(200)))
        expect(connection.queuedBytes == 0 && !net.loop.isAlive)
        expect(connection.write("x"), failsWith: RecordFilter.Flaw.unknownRecord(0xEE))
        expect(connection.close().isFulfilled, "nothing is left for which it could wait")
    }

    /// Its writes wait for a byte of input, and produce no output.
    private struct Collecting: ConnectionFilter {
        var mayWrite = false

        mutating func receive(_ bytes: RawSpan, _ output: inout FilterOutput) { mayWrite = true }
        func write(_ bytes: RawSpan, _ output: inout FilterOutput) { if !mayWrite { output.waitForInput() } }
    }

    @Test(.pair) func deferredWritesWithoutOutputEndTheWaitForRoom() throws {
        _ = try hang(connection.filter(Collecting()), timeout: patience)
        connection.writeWatermarks = (low: 10, high: 100)
        let write = connection.write(pattern(200))
        let writable = connection.writable()
        expect(write.isPending && writable.isPending)
        try peer.send("x")
        try hang(write, timeout: patience)
        expect(writable.isFulfilled && connection.isWritable)
    }

    @Test(.filteredPair(turns: 4000), arguments: [true, false]) func plainBytesThatNoReadTakesEndAWriteThatNeedsInput(
        inLoop: Bool
    ) throws {
        try holdWrites()
        let write: Promise<Void>
        if inLoop {
            // An echo: it reads when its write is done, which needs input.
            write = connection.forEachChunk { connection.write($0) }
        } else {
            write = connection.write("x")
        }
        let chunk = 50_000
        for index in 0..<60 where write.isPending {
            try peer.send(RecordFilter.data(pattern(chunk), at: 1 + index * chunk))
            for _ in 0..<3 { try net.loop.turn(.poll) }
        }
        expectEqual(code(write), ENOBUFS)
        expect(connection.bufferedByteCount <= (1 << 20) + 65536 + chunk)
        expectEqual(code(connection.write("x")), ENOBUFS)
    }

    @Test(.filteredPair(turns: 4000)) func aReadOfALargeFrameIsNotEndedByAWriteThatNeedsInput() throws {
        try holdWrites()
        let (write, read) = (connection.write("x"), connection.read(exactly: 2_000_000))
        for index in 0..<40 {
            try peer.send(RecordFilter.data(pattern(50_000), at: 1 + index * 50_000))
            for _ in 0..<3 { try net.loop.turn(.poll) }
        }
        expectEqual(try hang(read, timeout: patience).count, 2_000_000)
        expect(write.isPending)
        try peer.send(RecordFilter.record(.release))
        try hang(write, timeout: patience)
    }

    @Test(.filteredPair(turns: 20_000)) func theConnectionReadsForAWriteThoughItsOwnOutputWaits() throws {
        try holdWrites()
        let budget = net.limitSends(to: 0)
        let write = connection.write("x")
        let pings = RecordFilter.pings(4000)
        for _ in 0..<10 {
            try peer.send(pings)
            for _ in 0..<3 { try net.loop.turn(.poll) }
        }
        // The peer reads only after its answer, which the write needs.
        try peer.send(RecordFilter.record(.release))
        try net.loop.run(until: { connection.queuedBytes > 10 * pings.count })
        budget.remaining = .max
        try hang(write, timeout: patience)
    }

    @Test(.network(turns: 20_000), arguments: [true, false]) func outputThatThePeerDoesNotTakeEndsAFilterThatNeedsInput(
        inHandshake: Bool
    ) throws {
        let (connection, peer) = try inHandshake ? net.pair() : net.filteredPair()
        let waiting: Promise<Void>
        if inHandshake {
            net.limitSends(to: 0)
            waiting = connection.filter(RecordFilter()).asVoid()
        } else {
            try holdWrites(of: connection, by: peer)
            net.limitSends(to: 0)
            waiting = connection.write("x")
        }
        let pings = RecordFilter.pings(4000)
        for _ in 0..<100 where waiting.isPending {
            try peer.send(pings)
            for _ in 0..<3 { try net.loop.turn(.poll) }
        }
        expectEqual(code(waiting), ENOBUFS)
        expect(connection.queuedBytes <= (1 << 20) + 65536)
    }

    @Test(.network(turns: 20_000)) func whatWasPostedBeforeTheFilterIsNotItsOutput() throws {
        let (connection, peer) = try net.pair()
        let budget = net.limitSends(to: 0)
        let posted = pattern(2 << 20)
        expect(connection.post(posted, overflow: .drop))
        let ready = connection.filter(RecordFilter())
        try peer.send(RecordFilter.record(.hello, [0x5A]) + RecordFilter.data([1]))
        _ = try hang(ready, timeout: patience)
        expectEqual(try hang(connection.receive(), timeout: patience), [1])
        let received = elsewhere { try peer.receive(exactly: posted.count + 6) }
        budget.remaining = .max
        expect(try hang(received, timeout: patience) == posted + RecordFilter.record(.hello, [0x5A]))
    }

    @Test(.filteredPair(turns: 20_000)) func smallOutputsWithoutWritesAreJoinedAndLimited() throws {
        net.limitSends(to: 0)
        net.limitReceives(to: 50)
        connection.receive().ignoringErrors()
        try peer.send(RecordFilter.pings(14_000))
        for _ in 0..<1400 { try net.loop.turn(.poll) }
        expect(connection.queuedBytes >= 65_536 && connection.queuedBytes < 65_536 + 50)
        // In few entries, which also count: a write still finds room.
        connection.writeQueueLimit = 65_536 + 5 * 192 + 100
        expect(connection.write("x").isPending)
    }

    @Test(.filteredPair) func anEndRecordRejectsTheWritesThatNeedInputAndNothingElse() throws {
        try holdWrites()
        let write = connection.write("never")
        let end = connection.shutdownWrite()
        try peer.send(RecordFilter.data([2], at: 1) + RecordFilter.record(.end))
        expectEqual(try rejection(of: write), EPIPE)
        try hang(end, timeout: patience)
        expectEqual(try hang(connection.receive(), timeout: patience), [2])
        expectEqual(connection.read().settledValue, .end)
        expectEqual(try peer.readToEnd(), RecordFilter.record(.end), "this side has its end record, too")
        peer.close()
        let closed = connection.closed
        connection.close()
        let reason = hang(closed)
        expectEqual(reason, .closed)
    }

    @Test(.filteredPair) func aWriteBehindTheEndRecordThatNeedsInputIsRejectedAtOnce() throws {
        try peer.send(RecordFilter.record(.hold) + RecordFilter.record(.end))
        expectEqual(try hang(connection.read(), timeout: patience), .end)
        expectEqual(code(connection.write("never")), EPIPE)
        connection.close()
        expectEqual(try peer.readToEnd(), RecordFilter.record(.end))
    }
}
