@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

struct PostTests {
    /// Runs `body` inside a turn, which then ends.
    private func inTurn(_ net: Network, _ body: @escaping () -> Void) throws {
        var isDone = false
        net.loop.enqueue {
            body()
            isDone = true
        }
        try net.loop.run(until: { isDone })
        try net.loop.turn(.poll)
    }

    /// A connection whose queue has reached its limit, since its peer does not read.
    private func full(_ net: Network) throws -> (Connection, Peer) {
        let (connection, peer) = try net.pair(receiveBuffer: 4096)
        connection.writeQueueLimit = 1 << 16
        while connection.queuedBytes < 1 << 16 {
            connection.post([UInt8](repeating: 0, count: 1 << 20), overflow: .drop)
        }
        return (connection, peer)
    }

    @Test(.pair) func thoseOfATurnLeaveTogetherInOrderWithWrites() throws {
        func calls() -> Int { net.calls(.send) + net.calls(.sendVector) }
        let message = pattern(74)
        try inTurn(net) { for _ in 0..<20 { connection.post(message, overflow: .drop) } }
        expectEqual(calls(), 1)
        expectEqual(try peer.receive(exactly: 20 * 74), [[UInt8]](repeating: message, count: 20).flatMap { $0 })
        // Outside of a turn they are sent as writes are.
        connection.post("x".utf8, overflow: .drop)
        expectEqual(try peer.receive(exactly: 1), Array("x".utf8))
        var writes: [Promise<Void>] = []
        try inTurn(net) {
            for letter in "abc" { expect(connection.post("\(letter)".utf8, overflow: .drop)) }
            // Sends the posted bytes too, as the first write of a turn.
            writes.append(connection.write("d"))
            for letter in "efg" { connection.post(Array("\(letter)".utf8), overflow: .drop) }
            writes.append(connection.write("h"))
            connection.post("ij".utf8.dropFirst(0), overflow: .abort)
            writes.append(connection.write("k"))
        }
        expectEqual(calls(), 4)
        try hang(when(fulfilled: writes), timeout: patience)
        expectEqual(try peer.receive(exactly: 11), Array("abcdefghijk".utf8))
    }

    @Test(.network) func theyTakeTheMemoryOfTheirBytesAndNoMoreThanTheLimit() throws {
        let (connection, _) = try net.pair()
        connection.writeQueueLimit = 10_000
        net.limitSends(to: 0)
        var taken = 0
        for _ in 0..<3 {
            try inTurn(net) { for _ in 0..<100 where connection.post([1, 2], overflow: .drop) { taken += 1 } }
        }
        // As single writes they would take 58,200 bytes.
        expect(taken == 300 && connection.queuedBytes == 600)
        try inTurn(net) { while connection.post(pattern(100), overflow: .drop) { taken += 1 } }
        expect((9_000...10_000).contains(connection.queuedBytes))
        expect(!connection.post("x".utf8, overflow: .drop) && !connection.isClosed)
        let waiting = connection.read()
        expect(!connection.post("x".utf8, overflow: .abort) && connection.isClosed)
        guard case .failed(let error) = waiting.settledValue else { return expect(false) }
        expectEqual(error.code, ENOBUFS)
    }

    @Test(.pair) func watermarksHoldAProducerUp() throws {
        let budget = net.limitSends(to: 100_000)
        var count = 0
        func produce() {
            while connection.isWritable && count < 5_000 {
                count += 1
                expect(connection.post(pattern(100), overflow: .abort))
            }
            if count < 5_000 { connection.writable().done { produce() } }
        }
        try inTurn(net, produce)
        expect(!connection.isWritable && (160_000...240_000).contains(count * 100))
        budget.remaining = .max
        let all = elsewhere { try peer.receive(exactly: 500_000) }
        expectEqual(try hang(all, timeout: patience), [[UInt8]](repeating: pattern(100), count: 5_000).flatMap { $0 })
    }

    @Test(.network) func newWatermarksDoNotWaitForBytesThatAreGathered() throws {
        let (a, b) = try Connection.pair()
        hang(
            after(.zero).done {
                expect(a.post(pattern(500), overflow: .drop))
                a.writeWatermarks = (low: 10, high: 20)
            })
        expectEqual(try hang(b.read(exactly: 500), timeout: patience), pattern(500))
        expect(a.isWritable && a.writable().isResolved)
    }

    @Test(.network(turns: 4_000)) func aPeerThatDoesNotReadGetsWhatWasTakenAndTheRestIsDropped() throws {
        let (connection, peer) = try full(net)
        expect(!connection.post([7], overflow: .drop))
        let before = connection.bytesSent + connection.queuedBytes
        let all = elsewhere { try peer.receive(exactly: before + 1) }
        let isSent = connection.writable().then { connection.write([9]) }
        try hang(isSent, timeout: patience)
        let bytes = try hang(all, timeout: patience)
        expect(bytes.last == 9 && bytes.dropLast().allSatisfy { $0 == 0 })
    }

    @Test(.network(turns: 4_000)) func aResetFindsPostsThatWait() throws {
        let (connection, peer) = try full(net)
        let (end, read) = (connection.closed, connection.readLine())
        peer.reset()
        expectEqual(try rejection(of: read), ECONNRESET)
        expect(!connection.post("x".utf8, overflow: .abort) && !connection.post("".utf8, overflow: .drop))
        connection.close()
        guard case .failed = try hang(end, timeout: patience) else { return expect(false) }
        expectEqual(connection.queuedBytes, 0)
    }

    @Test(.network) func aFailureOfTheSendAtTheEndOfTheTurnIsReportedByTheConnection() throws {
        let (connection, _) = try net.pair()
        net.kernel.send = { _, _, _ in -Int(EPIPE) }
        var taken: [Bool] = []
        try inTurn(net) { taken.append(connection.post("x".utf8, overflow: .drop)) }
        expect(taken == [true] && code(connection.write("y")) == EPIPE)
        expect(!connection.post("x".utf8, overflow: .drop))
    }

    @Test(.pair) func handlersOfWritesMayPost() throws {
        let budget = net.limitSends(to: 1)
        for number in UInt8(0)..<4 {
            // On the loop's thread, like all handlers of this test.
            nonisolated(unsafe) let connection = connection
            connection.write([10 * number]).pipe { _ in
                for next in 1...3 { expect(connection.post([10 * number + UInt8(next)], overflow: .drop)) }
            }
        }
        try net.loop.turn(.poll)
        budget.remaining = .max
        let bytes = elsewhere { try peer.receive(exactly: 16) }
        expectEqual(try hang(bytes, timeout: patience).sorted(), (0..<4).flatMap { n in (0..<4).map { 10 * n + $0 } })
    }

    /// It skips those that have ended, or whose peer has, and ends those whose queue is full.
    @Test(.network(turns: 4_000)) func aBroadcastIsAPostToEach() throws {
        let connections = [try net.pair(), try full(net), try full(net), try net.pair(), try net.pair()]
        connections[4].1.reset()
        awaitArrival(of: POLLIN, at: net.ledger.accepted[4])
        let reads = connections.map { $0.0.readLine() }
        let ends = connections.map { $0.0.closed }
        func send(_ byte: UInt8) -> Int { broadcast([byte], to: connections.map(\.0), overflow: .abort) }
        expectEqual(send(7), 2)
        for number in [1, 2] {
            expectEqual(code(reads[number]), ENOBUFS)
            guard case .failed(let error) = hang(ends[number]) else { return expect(false) }
            expect(error.code == ENOBUFS && error.description.contains("the limit is 65536"))
            expectEqual(connections[number].1.failureOfReading(), ECONNRESET)
        }
        expectEqual(send(8), 2)
        try net.loop.turn(.poll)
        expectEqual(code(reads[4]), ECONNRESET)
        for number in [0, 3] { expectEqual(try connections[number].1.receive(exactly: 2), [7, 8]) }
    }

    @Test(.pair) func theEndsDeliverOrDropThem() throws {
        let (closed, first) = (connection, peer)
        let (shut, second) = try net.pair()
        let (aborted, third) = try net.pair()
        try inTurn(net) {
            for connection in [closed, shut, aborted] { connection.post("x".utf8, overflow: .drop) }
            closed.close()
            shut.shutdownWrite()
            aborted.abort()
            for connection in [closed, shut, aborted] { expect(!connection.post("y".utf8, overflow: .abort)) }
        }
        expectEqual(try first.readToEnd(), Array("x".utf8))
        expectEqual(try second.readToEnd(), Array("x".utf8))
        expectEqual(third.failureOfReading(), ECONNRESET)
        first.close()
        shut.abort()
        net.settle()
    }

    @Test func eachIsAWriteOfAFilter() throws {
        try withPair(madeBy: { try $0.filteredPair() }) { net, connection, peer in
            try inTurn(net) {
                expect(connection.post(pattern(10), overflow: .drop))
                connection.write(pattern(5, from: 10)).orFail()
                expect(connection.post(pattern(7, from: 15), overflow: .drop))
            }
            let all =
                RecordFilter.data(pattern(10)) + RecordFilter.data(pattern(5, from: 10), at: 10)
                + RecordFilter.data(pattern(7, from: 15), at: 15)
            expectEqual(try peer.receive(exactly: all.count), all)
            connection.writeQueueLimit = 1_000
            net.limitSends(to: 0)
            while connection.post(pattern(100), overflow: .drop) {}
            expect((1_000..<1_500).contains(connection.queuedBytes + 192 * 4))
            expect(!connection.post("x".utf8, overflow: .abort) && connection.isClosed)
        }
        try withNetwork { net in
            let (connection, _) = try net.pair()
            let ready = connection.filter(RecordFilter())
            expect(!connection.post("x".utf8, overflow: .drop), "the handshake has not finished")
            connection.abort()
            #expect(throws: (any Error).self) { try hang(ready) }
        }
    }
}
