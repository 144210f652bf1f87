@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

struct FilterWriteTests {
    @Test(.filteredPair) func aWriteIsFulfilledWhenTheKernelHasTakenItsOutput() throws {
        let budget = net.limitSends(to: 14)
        let (first, second) = (connection.write(pattern(10)), connection.write(pattern(10_000, from: 10)))
        try net.loop.turn(.poll)
        expect(first.isPending && connection.queuedBytes == 15 + 10_005 - 14)
        budget.remaining = 1
        try hang(first, timeout: patience)
        expect(second.isPending && connection.queuedBytes == 10_005)
        budget.remaining = 10_004
        try net.loop.run(until: { connection.queuedBytes == 1 })
        expect(second.isPending)
        budget.remaining = .max
        try hang(second, timeout: patience)
        let all = RecordFilter.data(pattern(10)) + RecordFilter.data(pattern(10_000, from: 10), at: 10)
        expectEqual(try peer.receive(exactly: all.count), all)
    }

    @Test(.network) func anErrorOfTheFirstSendRejectsItsWrite() throws {
        let (connection, _) = try net.filteredPair()
        var calls = 0
        net.kernel.send = { _, _, _ in
            calls += 1
            return -Int(ECONNRESET)
        }
        let write = connection.write(pattern(10))
        expect(code(write) == ECONNRESET && calls == 1)
        expect(code(connection.write("x")) == ECONNRESET && calls == 1)
    }

    /// The peer's filter reports that the end record is missing.
    @Test(.filteredPair, arguments: [true, false]) func anEndRecordThatIsNotTakenCostsNoWrite(isSent: Bool) throws {
        let record = RecordFilter.data(pattern(1000))
        net.limitSends(to: isSent ? record.count : 500)
        let write = connection.write(pattern(1000))
        hang(connection.close(linger: .milliseconds(10)))
        if isSent {
            try hang(write, timeout: patience)
            expectEqual(try peer.readToEnd(), record)
        } else {
            expectEqual(code(write), ECANCELED)
            expectEqual(peer.failureOfReading(), ECONNRESET)
        }
    }

    @Test(.filteredPair) func smallWritesOfATurnLeaveTogetherAndEmptyOnesKeepTheirOrder() throws {
        let begun = net.calls(.send) + net.calls(.sendVector)
        var order: [Int] = []
        net.loop.enqueue {
            for index in 0..<100 {
                connection.write(index % 10 == 9 ? [] : [UInt8(index)]).done { order.append(index) }.cauterize()
            }
        }
        try net.loop.run(until: { order.count == 100 })
        expectEqual(order, Array(0..<100))
        expect(net.calls(.send) + net.calls(.sendVector) - begun <= 2)
        expectEqual(try peer.receive(exactly: 90 * 6).count, 90 * 6)
    }

    @Test(.filteredPair) func whatAFilterSendsWithInputLeavesWithTheAnswer() throws {
        let request = RecordFilter.record(.ping) + RecordFilter.data(Array("ask".utf8))
        let pong = RecordFilter.record(.pong)
        let begun = net.calls(.send) + net.calls(.sendVector)
        try peer.send(request)
        let answered = connection.receive().then { _ in
            let first = connection.write("one")
            // It was sent before the end of the turn.
            expect(first.isFulfilled && connection.queuedBytes == 0)
            return connection.write("two")
        }
        try hang(answered, timeout: patience)
        expectEqual(net.calls(.send) + net.calls(.sendVector) - begun, 2)
        let all = pong + RecordFilter.data(Array("one".utf8)) + RecordFilter.data(Array("two".utf8), at: 3)
        expectEqual(try peer.receive(exactly: all.count), all)
        // Without an answer it is sent at the end of the turn.
        try peer.send(RecordFilter.record(.ping) + RecordFilter.data([1], at: 3))
        expectEqual(try hang(connection.receive(), timeout: patience), [1])
        expectEqual(try peer.receive(exactly: pong.count), pong)
    }

    /// A client's last handshake message is sent with its request; a server's is sent at once, since the client has to
    /// speak.
    @Test(.pair, arguments: [true, false]) func theLastOutputOfAHandshakeLeavesWithTheFirstRequest(isClient: Bool)
        throws
    {
        struct Greeting: ConnectionFilter {
            let isClient: Bool
            func begin(_ output: inout FilterOutput) { if isClient { output.send([1]) } }
            func receive(_ bytes: RawSpan, _ output: inout FilterOutput) {
                output.becomeReady()
                output.send([2])
            }
            func write(_ bytes: RawSpan, _ output: inout FilterOutput) { output.send(bytes) }
        }
        let begun = net.calls(.send) + net.calls(.sendVector)
        let asked = connection.filter(Greeting(isClient: isClient)).then { $0.write([3]) }
        if isClient { expectEqual(try peer.receive(exactly: 1), [1]) }
        try peer.send("x")
        try hang(asked, timeout: patience)
        expectEqual(try peer.receive(exactly: 2), [2, 3])
        expectEqual(net.calls(.send) + net.calls(.sendVector) - begun, 2)
    }

    @Test(.network) func outputThatWaitsForAnAnswerIsNotLostWhenTheConnectionEnds() throws {
        for end in 0..<3 {
            let (connection, peer) = try net.filteredPair()
            let client = elsewhere {
                try peer.send(RecordFilter.record(.ping) + RecordFilter.data([1]))
                let all = try peer.readToEnd()
                peer.close()
                return all
            }
            let ended = connection.receive().then { _ -> Promise<Void> in
                switch end {
                case 0: return connection.close().asPromise()
                case 1: return connection.shutdownWrite()
                default: return connection.write([]).then { connection.close() }
                }
            }
            expectEqual(try hang(client, timeout: patience), RecordFilter.record(.pong) + RecordFilter.record(.end))
            try hang(ended, timeout: patience)
            connection.abort()
        }
    }

    @Test(.network) func endRecordsFollowTheQueueAndPrecedeTheEnd() throws {
        for closes in [true, false] {
            let (connection, peer) = try net.filteredPair()
            let budget = net.limitSends(to: 100)
            connection.write(pattern(200)).cauterize()
            if closes { connection.close() } else { connection.shutdownWrite().cauterize() }
            expectEqual(code(connection.write("x")), (closes ? EBADF : EPIPE))
            budget.remaining = 105 + 2
            try net.loop.turn(.poll)
            try net.loop.turn(.poll)
            budget.remaining = .max
            if !closes { try hang(connection.shutdownWrite(), timeout: patience) }
            try net.loop.run(until: { connection.queuedBytes == 0 })
            expectEqual(try peer.readToEnd(), RecordFilter.data(pattern(200)) + RecordFilter.record(.end))
            peer.close()
            hang(connection.close())
        }
    }

    @Test(.filteredPair) func aWriteThatNeedsInputMakesTheConnectionRead() throws {
        try holdWrites()
        let writes = [connection.write("a"), connection.write(""), connection.write("bc")]
        writes[1].cancel()
        expect(writes.allSatisfy(\.isPending) && connection.queuedBytes == 3 && net.loop.isAlive)
        // Plain bytes that arrive meanwhile are kept, and no read waits for them.
        try peer.send(RecordFilter.data([2, 3], at: 1) + RecordFilter.record(.ping))
        try net.loop.run(until: { connection.bufferedByteCount == 2 })
        expect(writes[0].isPending)
        try peer.send(RecordFilter.record(.release))
        try hang(when(fulfilled: writes), timeout: patience)
        let expected =
            RecordFilter.record(.pong) + RecordFilter.data(Array("a".utf8)) + RecordFilter.data(Array("bc".utf8), at: 1)
        expectEqual(try peer.receive(exactly: expected.count), expected)
        expect(!net.loop.isAlive && connection.queuedBytes == 0)
        expectEqual(try hang(connection.receive(), timeout: patience), [2, 3])
    }

    @Test(.filteredPair, arguments: [true, false]) func theEndWaitsForWritesThatNeedInput(closes: Bool) throws {
        try holdWrites()
        let write = connection.write("last words")
        let end = closes ? connection.close().asPromise() : connection.shutdownWrite()
        expectEqual(code(connection.write("x")), (closes ? EBADF : EPIPE))
        for _ in 0..<5 { try net.loop.turn(.poll) }
        expect(end.isPending && write.isPending)
        try peer.send(RecordFilter.record(.release))
        try hang(write, timeout: patience)
        expectEqual(try peer.readToEnd(), RecordFilter.data(Array("last words".utf8)) + RecordFilter.record(.end))
        peer.close()
        try hang(end, timeout: patience)
    }

    enum End: CaseIterable { case end, reset, resetInClose, abort, garbage, garbageInClose, close }

    @Test(.filteredPair(.virtual), arguments: End.allCases) func writesThatNeedInputAreRejectedWithTheirConnection(
        how: End
    ) throws {
        try holdWrites()
        let write = connection.write("never")
        let later = connection.write("")
        if how == .resetInClose || how == .garbageInClose { connection.close() }
        switch how {
        case .end: peer.end()
        case .reset, .resetInClose: peer.reset()
        case .abort: connection.abort()
        case .garbage, .garbageInClose: try peer.send([0xEE, 0, 0, 0, 0])
        case .close: connection.close()
        }
        try hang(when(resolved: write, later).asVoid(), timeout: .seconds(3600))
        let error = try #require(write.error)
        expectEqual("\(later.error!)", "\(error)")
        switch how {
        case .end: expect(error as? ConnectionFilterError == .truncated)
        case .reset:
            expectEqual(code(write), ECONNRESET)
            // It is not read for writes that have failed.
            let begun = net.calls(.receive)
            for _ in 0..<5 { try net.loop.turn(.poll) }
            expect(net.calls(.receive) == begun && !net.loop.isAlive)
        case .resetInClose: expectEqual(code(write), ECONNRESET)
        case .abort, .close: expectEqual(code(write), ECANCELED)
        case .garbage: expect(error as? RecordFilter.Flaw == .unknownRecord(0xEE))
        case .garbageInClose:
            expect(error as? RecordFilter.Flaw == .unknownRecord(0xEE))
            expectEqual(try peer.readToEnd(), RecordFilter.record(.alert))
        }
    }
}
