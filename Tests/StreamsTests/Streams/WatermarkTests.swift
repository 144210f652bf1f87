@testable import PromisesTestSupport

struct WatermarkTests {
    @Test(.network(turns: 4000)) func aProducerThatAsksKeepsTheQueueShort() throws {
        let (a, b) = try Connection.pair()
        let chunk = pattern(10_000)
        var (left, peak, pauses) = (500, 0, 0)
        func produce() -> Guarantee<Void> {
            while left > 0 && a.isWritable {
                left -= 1
                a.write(chunk).cauterize()
                peak = max(peak, a.queuedBytes)
            }
            if left == 0 { return .value }
            pauses += 1
            return a.writable().then { () -> Guarantee<Void> in
                expect(a.isWritable && a.queuedBytes <= 32 << 10)
                return produce()
            }
        }
        let produced = produce()
        let all = b.read(exactly: 500 * chunk.count)
        try hang(produced, timeout: patience)
        try hang(all, timeout: patience)
        expect(peak <= 65536 + chunk.count)
        expect(pauses > 3)
    }

    @Test(.network) func itFlipsOnceACrossing() throws {
        let (a, b) = try Connection.pair()
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

    /// As in the documentation: a producer that only reads `isWritable` would loop forever.
    @Test(.network) func aProducerEndsWithItsConnection() throws {
        let (connection, peer) = try net.pair(receiveBuffer: 4096)
        let chunk = pattern(10_000)
        func produce() -> Promise<Void> {
            while connection.isWritable { connection.write(chunk).ignoringErrors() }
            return connection.writable().then { connection.write(chunk) }.then { produce() }
        }
        let produced = produce()
        net.settle(.milliseconds(1))
        peer.reset()
        let code = try rejection(of: produced)
        expect(code == ECONNRESET || code == EPIPE)
        try net.loop.turn(.poll)
        expect(!net.loop.isAlive)
    }

    @Test(.network(turns: 1000)) func aCancelledOneLeavesTheOthers() throws {
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
}
