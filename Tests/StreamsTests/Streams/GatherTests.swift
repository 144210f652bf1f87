@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// Answers to requests that arrived together are sent together, whether or not the handler waits for its writes.
struct GatherTests {
    /// The guide's ways to read requests and to answer each.
    enum Idiom: CaseIterable {
        case forEachLine, forEachLineAwaited, readLine, readLineAwaited, exactly, deferred, lending, readFrame

        /// Answers each line of nine bytes with `OK`, until the peer ends.
        func serve(_ connection: Connection) -> Promise<Void> {
            switch self {
            case .forEachLine: connection.forEachLine { _ in connection.write("+OK\r\n").cauterize() }
            case .forEachLineAwaited: connection.forEachLine { _ in connection.write("+OK\r\n") }
            case .readLine:
                connection.readLine().then { line -> Promise<Void> in
                    if line == nil { return .value }
                    connection.write("+OK\r\n").cauterize()
                    return serve(connection)
                }
            case .readLineAwaited:
                connection.readLine().then { line in
                    line == nil ? .value : connection.write("+OK\r\n").then { serve(connection) }
                }
            case .exactly:
                connection.read(exactly: 9).then { _ in connection.write("+OK\r\n") }.then { serve(connection) }
                    .recover(only: StreamError.self) { _ in .value }
            case .lending:
                connection.forEachFrame(DelimiterDecoder("\r\n")) { _, _ in
                    connection.write { $0.append("+OK\r\n") }
                }
            case .readFrame:
                connection.readFrame { [UInt8](try $0.line()) }.then { line in
                    line == nil ? .value : connection.write { $0.append("+OK\r\n") }.then { serve(connection) }
                }
            case .deferred:
                // An answer that takes some jobs to prepare.
                connection.readLine().then { line -> Promise<Void> in
                    if line == nil { return .value }
                    return Promise.value("+OK\r\n").map { $0 }.then { Promise.value($0) }.get { _ in }
                        .then { connection.write($0) }.then { serve(connection) }
                }
            }
        }
    }

    @Test(.network(.virtual, turns: 20_000), arguments: Idiom.allCases) func aPacketOfRequestsIsAnsweredWithOneCall(
        idiom: Idiom
    ) throws {
        // Virtual time: on a slow machine the jobs of a turn would be cut off by the clock, and gathered bytes sent early.
        net.ledger.sendsPiecesSingly = false
        let (connection, peer) = try net.pair()
        let served = idiom.serve(connection)
        let packets = scaled(500)
        let packet = String(repeating: "GET key\r\n", count: 16)
        for round in 1...packets {
            try net.deliver(Array(packet.utf8), from: peer)
            try net.loop.run(until: { connection.bytesSent == round * 16 * 5 })
            expectEqual(try peer.receive(exactly: 16 * 5).count, 16 * 5)
        }
        expect(net.calls(.send) + net.calls(.sendVector) <= packets * 11 / 10)
        peer.end()
        try hang(served, timeout: patience)
    }

    @Test(.pair(.virtual, turns: 1000), arguments: Idiom.allCases) func aSingleRequestIsAnsweredAtOnce(idiom: Idiom)
        throws
    {
        let served = idiom.serve(connection)
        for round in 1...20 {
            try net.deliver(Array("GET key\r\n".utf8), from: peer)
            let turns = try net.turns { try net.loop.run(until: { connection.bytesSent == round * 5 }) }
            expect(turns <= 3)
            expectEqual(net.calls(.send), round)
        }
        peer.end()
        try hang(served, timeout: patience)
    }

    /// Lines, one of which has a slow answer, and part of a line at the end.
    @Test(.pair(.virtual)) func aSlowAnswerHoldsNothingBack() throws {
        let (released, release) = Promise<Void>.pending()
        connection.forEachLine { line in
            (line == "slow" ? released : .value).then { connection.write(line + "!") }
        }.cauterize()
        try net.deliver(Array("1\n2\nslow\n3\n4\nhal".utf8), from: peer)
        try net.loop.run(until: { connection.bytesReceived > 0 })
        for _ in 0..<2 { try net.loop.turn(.poll) }
        expectEqual(try peer.receive(exactly: 4), Array("1!2!".utf8))
        expectEqual(net.calls(.send), 1)
        release.fulfill(())
        try net.loop.turn(.poll)
        expectEqual(try peer.receive(exactly: 9), Array("slow!3!4!".utf8))
        expectEqual(net.calls(.send), 2)
    }

    @Test(.pair) func betweenTurnsAWriteIsSentAtOnce() throws {
        try peer.send(Array("a\nb\nc\n".utf8))
        expectEqual(try hang(connection.readLine(), timeout: patience), "a")
        expect(connection.write("x").isFulfilled)
        expectEqual(net.calls(.send), 1)
        expectEqual(try peer.receive(exactly: 1), Array("x".utf8))
    }

    @Test(.pair, arguments: [true, false]) func theEndIsSentBehindGatheredWrites(closes: Bool) throws {
        connection.forEachLine { _ in
            connection.write("answer").cauterize()
            if closes { connection.close() } else { connection.shutdownWrite() }
        }.cauterize()
        let received = elsewhere {
            try peer.send(Array("a\nb\n".utf8))
            let bytes = try peer.readToEnd()
            peer.end()
            return bytes
        }
        expect(try hang(received, timeout: patience).starts(with: Array("answer".utf8)))
        if !closes { connection.abort() }
    }

    @Test(.network(turns: 2000)) func aFullBlockLeaves() throws {
        net.ledger.sendsPiecesSingly = false
        let (connection, peer) = try net.pair()
        let answers = (0..<40).map { pattern(10_000, from: $0 * 10_000) }
        var next = 0
        let served = connection.forEachLine { _ -> Promise<Void> in
            next += 1
            expect(connection.queuedBytes <= 65_536 || !connection.isWritable)
            return connection.write(answers[next - 1])
        }
        let received = elsewhere {
            try peer.send(Array(String(repeating: "\n", count: 40).utf8))
            let bytes = try peer.receive(exactly: 400_000)
            peer.end()
            return bytes
        }
        try hang(served, timeout: patience)
        expectEqual(try hang(received, timeout: patience), answers.flatMap { $0 })
    }

    @Test(.network(turns: 100_000), arguments: 0..<20 as Range<UInt64>) func theOrderStaysWhateverTheKernelTakes(
        seed: UInt64
    ) throws {
        var dice = SplitMix64(seed)
        let (connection, peer) = try net.pair()
        let real = net.kernel.send
        var errors = SplitMix64(seed &+ 1000)
        net.kernel.send = {
            switch errors.below(4) {
            case 0: -Int(EAGAIN)
            case 1: real($0, $1, min($2, 1 + errors.below(20_000)))
            default: real($0, $1, $2)
            }
        }
        let sizes = [0, 1, 2, 100, 4096, 4097, 16_384, 16_385, 65_535, 65_536, 65_537]
        var sent: [UInt8] = []
        var order: [Int] = []
        var count = 0
        let served = connection.forEachLine { _ -> Promise<Void> in
            let bytes = pattern(dice.pick(sizes), from: sent.count)
            sent += bytes
            let number = count
            count += 1
            let write = connection.write(bytes)
            write.done { order.append(number) }.cauterize()
            return dice.below(2) == 0 ? write : .value
        }.then { connection.close() }
        let received = elsewhere {
            for round in 0..<30 {
                try peer.send(Array(String(repeating: "\n", count: 1 + round % 7).utf8))
            }
            peer.end()
            return try peer.readToEnd()
        }
        try hang(served, timeout: patience)
        expectEqual(try hang(received, timeout: patience), sent)
        try net.loop.run(until: { order.count == count })
        expectEqual(order, Array(0..<count))
    }

    @Test(.pair) func aFailureToSendRejectsTheNextWriteAndTheNextRead() throws {
        var later: Promise<Void>?
        let served = connection.forEachLine { _ -> Promise<Void> in
            if later != nil { return .value }
            net.kernel.send = { _, _, _ in -Int(EPIPE) }
            let write = connection.write("lost")
            expect(write.isFulfilled)
            later = after(.milliseconds(1)).then { connection.write("more") }
            return write
        }
        try peer.send(Array("a\nb\n".utf8))
        try net.loop.run(until: { later?.isResolved == true })
        expectEqual(code(later!), EPIPE)
        connection.shutdownWrite().cauterize()
        peer.end()
        expectEqual(try rejection(of: served), EPIPE)
    }

    @Test(.pair) func aWriteIsRejectedWhenTheQueueCannotBeRegistered() throws {
        var writes: [Promise<Void>] = []
        let served = connection.forEachLine { _ -> Void in
            net.kernel.send = { _, _, _ in -Int(EAGAIN) }
            net.kernel.epollControl = { _, _, _, _ in -Int(EPERM) }
            writes.append(connection.write("answer"))
        }
        try peer.send(Array("a\nb\n".utf8))
        try net.loop.run(until: { writes.count == 2 })
        // The first was gathered. The second sends both, and neither send(2) nor epoll_ctl(2) accepts them.
        expect(writes[0].isFulfilled && code(writes[1]) == EPERM)
        expectEqual(try rejection(of: served), EPERM)
    }

    @Test(.pair) func whatTheKernelDoesNotTakeIsInTheQueue() throws {
        let budget = net.limitSends(to: 3)
        var writes: [Promise<Void>] = []
        connection.forEachLine { _ -> Void in writes.append(connection.write("four")) }.cauterize()
        try peer.send(Array("a\nb\nc\n".utf8))
        try net.loop.run(until: { writes.count == 3 })
        // The first two were reported as written after the third request; the answer to that was not.
        expectEqual(writes.map(\.isFulfilled), [true, true, false])
        expectEqual(connection.queuedBytes, 9)
        budget.remaining = .max
        try hang(writes[2], timeout: patience)
        expectEqual(try peer.receive(exactly: 12), Array("fourfourfour".utf8))
    }
}
