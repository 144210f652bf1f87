@testable import Promises
@testable import PromisesTestSupport
@testable import ReactorIO
@testable import ReactorIOTestSupport

/// The limit of the write queue, its watermarks, and the turns that a flush leaves to others.
struct BackpressureTests {
    @Test(.pair) func whatIsNotAwaitedIsRefusedAtTheLimit() throws {
        connection.writeQueueLimit = 100_000
        let chunk = pattern(30_000)
        var taken = 0
        var accepted: [Promise<Void>] = []
        var refused: Promise<Void>?
        while refused == nil && taken < 1 << 28 {
            let write = connection.write(chunk)
            if write.isRejected {
                refused = write
            } else {
                accepted.append(write)
                taken += chunk.count
            }
            expect(connection.queuedBytes < 100_000 + chunk.count)
        }
        expectEqual(code(try #require(refused)), ENOBUFS)
        // Each write counts some more bytes.
        expect(connection.queuedBytes >= 99_000)
        let (received, all) = (taken, accepted)
        let reading = elsewhere { try peer.receive(exactly: received) }
        try hang(when(fulfilled: all), timeout: patience)
        let bytes = try hang(reading, timeout: patience)
        expectEqual(bytes.count, taken)
        for start in stride(from: 0, to: taken, by: chunk.count) {
            expectEqual(bytes[start..<start + chunk.count], chunk[...])
        }
        try hang(connection.write("more"), timeout: patience)
        expectEqual(try peer.receive(), Array("more".utf8))
    }

    @Test(.pair(turns: 3000)) func aConnectionWithAFastReaderLeavesTheOthersTheirTurn() throws {
        let (other, client) = try net.pair()
        let real = net.kernel.send
        let busy = net.ledger.accepted[0]
        var isFull = true
        // Once it has room, the reader never lets the kernel's buffer fill: without a bound, one flush would never end.
        net.kernel.send = { $0 != busy ? real($0, $1, $2) : isFull ? -Int(EAGAIN) : min($2, 1000) }
        connection.writeQueueLimit = .max
        let writes = (0..<100).map { _ in connection.write(pattern(20_000)) }
        isFull = false
        try client.send("ping")
        awaitArrival(of: POLLIN, at: net.ledger.accepted[1])
        let echoed = other.receive().then { other.write($0) }
        try hang(echoed, timeout: patience)
        expect(writes[99].isPending)
        expectEqual(try client.receive(), Array("ping".utf8))
        try hang(when(fulfilled: writes), timeout: patience)
    }

    @Test(.network) func whetherItIsWritableFlipsOnceACrossing() throws {
        let (a, b) = try Connection.pair()
        expect(a.writeWatermarks == (low: 32 << 10, high: 64 << 10))
        a.writeWatermarks = (low: 10, high: 20)
        let budget = net.limitSends(to: 0)
        var relieved = 0
        expect(a.isWritable && a.writable().isResolved)
        let writes = (0..<10).map { _ in
            let write = a.write(pattern(4))
            if !a.isWritable && relieved == 0 {
                relieved = -1
                a.writable().done { relieved = 1 }
            }
            return write
        }
        expect(!a.isWritable && a.queuedBytes == 40)
        let waiting = a.writable()
        // Below the high mark, and not yet at the low one.
        budget.remaining = 25
        try net.loop.turn(.poll)
        try net.loop.turn(.poll)
        expect(a.queuedBytes == 15 && !a.isWritable && waiting.isPending)
        budget.remaining = 5
        try hang(waiting, timeout: patience)
        expect(a.queuedBytes == 10 && a.isWritable && relieved == 1)
        // Between the marks it stays as it is.
        let more = a.write(pattern(5))
        expect(a.isWritable)
        budget.remaining = .max
        try hang(when(fulfilled: writes + [more]), timeout: patience)
        expectEqual(try hang(b.read(exactly: 45), timeout: patience).count, 45)
    }

    @Test func whatCannotBeWrittenToIsNotWaitedFor() throws {
        try withConnections { _, a, _ in
            a.write(pattern(4_000_000)).catch(policy: .allErrors) { _ in }
            expect(!a.isWritable)
            let waiting = a.writable()
            a.abort()
            try hang(waiting, timeout: patience)
            expect(!a.isWritable && a.writable().isResolved)
        }
        try withConnections { _, a, _ in
            a.shutdownWrite()
            expect(!a.isWritable && a.writable().isResolved)
        }
    }

    @Test(.network(turns: 1000)) func aCancelledWaitLeavesTheOthers() throws {
        let (a, b) = try Connection.pair()
        let write = a.write(pattern(4_000_000))
        a.writable().cancel()
        let cancelled = a.writable()
        let other = a.writable()
        cancelled.cancel()
        let read = b.read(exactly: 4_000_000)
        try hang(other, timeout: patience)
        try hang(read, timeout: patience)
        try hang(write, timeout: patience)
    }

    @Test(.network, arguments: [(5, 5), (-3, 0), (100, 1), (0, .min)]) func marksThatMakeNoSense(low: Int, high: Int)
        throws
    {
        let (a, b) = try Connection.pair()
        a.writeWatermarks = (low: low, high: high)
        let marks = a.writeWatermarks
        expect(marks.low >= 0 && marks.low < marks.high)
        let write = a.write(pattern(1_000_000))
        expect(!a.isWritable)
        let read = b.read(exactly: 1_000_000)
        try hang(a.writable(), timeout: patience)
        try hang(read, timeout: patience)
        try hang(write, timeout: patience)
    }

    // MARK: Memory

    @Test(.network, arguments: ["x", ""]) func aSmallWriteCountsWithItsBookkeeping(text: String) throws {
        let (connection, _) = try net.pair()
        net.limitSends(to: 0)
        connection.write("x").ignoringErrors()
        var count = 0
        while count < 200_000 {
            let write = connection.write(text)
            write.ignoringErrors()
            if code(write) == ENOBUFS { break }
            count += 1
        }
        // 4 MiB by some 200 bytes each.
        expect((10_000..<50_000).contains(count))
        expectEqual(connection.queuedBytes, 1 + count * text.utf8.count)
    }

    @Test(.network) func smallWritesMakeItUnwritableBeforeTheyAreRefused() throws {
        let (connection, peer) = try Connection.pair()
        let budget = net.limitSends(to: 0)
        var writes: [Promise<Void>] = []
        while connection.isWritable && writes.count < 200_000 { writes.append(connection.write("x")) }
        expect(!connection.isWritable)
        let relief = connection.writable()
        budget.remaining = .max
        let all = peer.read(exactly: writes.count)
        try hang(relief, timeout: patience)
        expect(connection.isWritable)
        try hang(when(fulfilled: writes), timeout: patience)
        try hang(all, timeout: patience)
    }

    @Test(.network, arguments: [false, true]) func writesThatAreTakenBackLeaveNothingBehind(isEmpty: Bool) throws {
        let (connection, _) = try net.pair()
        net.limitSends(to: 0)
        let first = connection.write("first")
        first.ignoringErrors()
        connection.writeQueueLimit = 100_000
        for _ in 0..<2_000 {
            let write = connection.write(isEmpty ? [] : [UInt8](repeating: 7, count: 100))
            expect(write.isPending)
            write.cancel()
        }
        expect(connection.queuedBytes == 5 && connection.heldMemory < 50_000)
        expect(first.isPending)
    }
}
