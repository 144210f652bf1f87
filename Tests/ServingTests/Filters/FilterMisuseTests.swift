@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

struct FilterMisuseTests {
    @Test(.network) func aFilterWhoseConnectionHasEndedIsReleased() throws {
        weak var filter: RecordFilter?
        do {
            let made = RecordFilter()
            filter = made
            let (connection, _) = try net.filteredPair(made)
            // A cycle, until the connection is closed.
            made.onStep = { _, _ in withExtendedLifetime(connection) {} }
            connection.abort()
        }
        try net.loop.turn(.poll)
        expect(filter == nil)
    }

    @Test(.network, arguments: RecordFilter.Step.allCases) func whateverAFilterThrowsFailsItsConnection(
        step: RecordFilter.Step
    )
        throws
    {
        let filter = RecordFilter()
        let flaw = RecordFilter.Flaw.injected(step)
        func throwing(_ now: RecordFilter.Step, _ output: inout FilterOutput) throws {
            guard now == step else { return }
            output.send(RecordFilter.record(.alert))
            throw flaw
        }
        if step == .begin {
            filter.onStep = throwing
            let (connection, peer) = try net.pair()
            expect(connection.filter(filter), failsWith: flaw)
            connection.close()
            expectEqual(try peer.readToEnd(), RecordFilter.record(.alert))
            return peer.close()
        }
        let (connection, peer) = try net.filteredPair(filter)
        let read = connection.readLine()
        try peer.send(RecordFilter.data(Array("half".utf8)))
        try net.loop.run(until: { connection.bufferedByteCount == 4 })
        filter.onStep = throwing
        switch step {
        case .receive: try peer.send(RecordFilter.data([1]))
        case .write: expect(connection.write("x"), failsWith: flaw)
        case .end: expect(connection.shutdownWrite(), failsWith: flaw)
        default: peer.end()
        }
        expect(read, failsWith: flaw)
        expect(connection.write("x"), failsWith: flaw)
        expectEqual(try hang(connection.receive(), timeout: patience), Array("half".utf8), "what came before is kept")
        expect(connection.receive(), failsWith: flaw)
        expectEqual(connection.read().settledValue, failed(EPROTO))
        expect(!connection.isWritable)
        connection.close()
        expectEqual(try peer.readToEnd(), RecordFilter.record(.alert))
    }

    @Test(.network) func anErrorOfTheEndDuringACloseClosesAllTheSame() throws {
        let filter = RecordFilter()
        let (connection, peer) = try net.filteredPair(filter)
        filter.onStep = { step, _ in if step == .end { throw RecordFilter.Flaw.injected(.end) } }
        let closed = connection.close()
        expect(try peer.readToEnd().isEmpty)
        peer.close()
        hang(closed)
    }

    @Test(.network) func aSystemErrorOfAFilterIsReportedAsItIs() throws {
        let filter = RecordFilter()
        let (connection, peer) = try net.filteredPair(filter)
        filter.onStep = { _, _ in throw SystemError(.receive, EACCES) }
        try peer.send("x")
        expectEqual(try hang(connection.read(), timeout: patience), failed(EACCES))
    }

    /// Each method ends the connection to which its filter belongs.
    @Test(.network, arguments: RecordFilter.Step.allCases, [true, false])
    func aFilterMayEndItsConnectionFromInside(step: RecordFilter.Step, inOrder: Bool) throws {
        let filter = RecordFilter()
        let (connection, peer) = try step == .begin ? net.pair() : net.filteredPair(filter)
        filter.onStep = { now, _ in
            guard now == step else { return }
            if inOrder { connection.close() } else { connection.abort() }
        }
        let ready = step == .begin ? connection.filter(filter) : .value(connection)
        let read = connection.readLine()
        var write = Promise.value
        switch step {
        case .begin: break
        case .receive: try peer.send(RecordFilter.data([1]))
        case .write: write = connection.write("x")
        case .end: connection.shutdownWrite().ignoringErrors()
        case .receiveEnd: peer.end()
        }
        try net.loop.run(until: { !read.isPending && !write.isPending && !ready.isPending })
        expect(read.error != nil && ready.isFulfilled == (step != .begin))
        expect(connection.isClosed)
        filter.onStep = { _, _ in }
        peer.close()
        hang(connection.close())
    }

    @Test(.network, arguments: [true, false]) func whatACallThatEndsItsConnectionSendsLeavesIfItEndsItInOrder(
        inOrder: Bool
    )
        throws
    {
        let filter = RecordFilter()
        let (connection, peer) = try net.filteredPair(filter)
        filter.onStep = { step, output in
            guard step == .write else { return }
            if inOrder { connection.close() } else { connection.abort() }
            output.deliver([1])
        }
        let write = connection.write("last")
        expect(inOrder ? write.isFulfilled : code(write) == ECANCELED)
        expectEqual(connection.bufferedByteCount, 0, "what it delivers is dropped")
        if inOrder {
            let sent = RecordFilter.data(Array("last".utf8)) + RecordFilter.record(.end)
            expectEqual(try peer.readToEnd(), sent)
        } else {
            expectEqual(peer.failureOfReading(), ECONNRESET)
        }
        filter.onStep = { _, _ in }
    }

    @Test(.network) func aFilterThatWritesFromInsideHasItsWriteAfterTheCall() throws {
        let filter = RecordFilter()
        let (connection, peer) = try net.filteredPair(filter)
        var inner: [Promise<Void>] = []
        filter.onStep = { step, _ in
            guard inner.count < 2, step == .write || step == .receive else { return }
            inner.append(connection.write("inner \(inner.count)"))
            expect(inner.last!.isPending)
        }
        let outer = connection.write("outer 0")
        try peer.send(RecordFilter.data([1]))
        expectEqual(try hang(connection.receive(), timeout: patience), [1])
        try hang(outer, timeout: patience)
        try hang(when(fulfilled: inner), timeout: patience)
        let all = ["outer 0", "inner 0", "inner 1"].map { Array($0.utf8) }
        let expected = all.enumerated().flatMap { RecordFilter.data($1, at: $0 * 7) }
        expectEqual(try peer.receive(exactly: expected.count), expected)
        filter.onStep = { _, _ in }
    }

    @Test(.network(turns: 4000), arguments: [RecordFilter.Step.receive, .write])
    func aFilterThatTurnsTheLoopIsNotCalledAgainMeanwhile(step: RecordFilter.Step) throws {
        let filter = RecordFilter()
        let (connection, peer) = try net.filteredPair(filter)
        var depth = 0
        var deepest = 0
        filter.onStep = { _, _ in
            depth += 1
            deepest = max(deepest, depth)
            try? peer.send(RecordFilter.record(.ping))
            for _ in 0..<5 { try net.loop.turn(.poll) }
            depth -= 1
            filter.onStep = { _, _ in }
        }
        let read = connection.receive()
        if step == .write { try hang(connection.write("x"), timeout: patience) }
        try peer.send(RecordFilter.data([1]))
        expectEqual(try hang(read, timeout: patience), [1])
        expect(deepest == 1 && depth == 0)
    }

    @Test(.network) func plainBytesOfAWriteReachAChunkLoopInAJob() throws {
        let filter = RecordFilter()
        let (connection, _) = try net.filteredPair(filter)
        var seen: [UInt8] = []
        var isWriting = false
        let chunks = connection.forEachChunk { chunk in
            expect(!isWriting)
            chunk.withUnsafeBytes { seen += $0 }
        }
        try net.loop.turn(.poll)
        filter.onStep = { step, output in if step == .write { output.deliver([1, 2]) } }
        isWriting = true
        let write = connection.write("x")
        isWriting = false
        try net.loop.run(until: { seen == [1, 2] })
        try hang(write, timeout: patience)
        connection.abort()
        chunks.ignoringErrors()
    }

    @Test(.network) func detachIsRefusedUntilTheFilterHasLeft() throws {
        let filter = RecordFilter()
        let (connection, peer) = try net.filteredPair(filter)
        #expect(throws: SystemError(.fileControl, EBUSY)) { _ = try connection.detach() }
        let budget = net.limitSends(to: 3)
        let (cipher, _) = (
            connection.write("filtered"),
            filter.onStep = { step, output in
                if step == .receive {
                    output.deliver(Array("left".utf8))
                    output.removeFilter()
                    filter.onStep = { _, _ in }
                }
            }
        )
        try peer.send(RecordFilter.record(.ping))
        expectEqual(try hang(connection.receive(), timeout: patience), Array("left".utf8))
        let plain = connection.write("plain")
        cipher.cancel()
        expect(cipher.isPending, "the rest of its record belongs to the stream")
        plain.cancel()
        expectEqual(plain.error?.isCancelled, true)
        budget.remaining = .max
        try hang(cipher, timeout: patience)
        try hang(connection.write("!"), timeout: patience)
        let expected = RecordFilter.data(Array("filtered".utf8)) + RecordFilter.record(.pong) + [33]
        expectEqual(try peer.receive(exactly: expected.count), expected)
        try peer.send("plain")
        expectEqual(try hang(connection.receive(), timeout: patience), Array("plain".utf8))
        let descriptor = try connection.detach()
        net.ledger.disown(descriptor)
        Glibc.close(descriptor)
    }

    @Test(.network) func aFilterMayLeaveWhileAWriteWaitsForItAndTheEndWaitsForTheWrite() throws {
        for closes in [true, false] {
            let filter = RecordFilter()
            let (connection, peer) = try net.filteredPair(filter)
            try holdWrites(of: connection, by: peer)
            let write = connection.write("plain")
            if closes { connection.close() } else { connection.shutdownWrite() }
            filter.onStep = { step, output in if step == .receive { output.removeFilter() } }
            try peer.send(RecordFilter.record(.ping))
            try hang(write, timeout: patience)
            let pong = RecordFilter.record(.pong)
            expectEqual(try peer.readToEnd(), pong + Array("plain".utf8))
            peer.close()
            hang(connection.close())
        }
    }

    @Test func theLoopMayEndWithWritesThatWaitForInput() throws {
        var write: Promise<Void>?
        try withNetwork { net in
            let (connection, peer) = try net.filteredPair()
            try holdWrites(of: connection, by: peer)
            write = connection.write("never")
            withExtendedLifetime(peer) {}
        }
        expectEqual(code(try #require(write)), ECANCELED)
    }

    @Test(.pair) func handshakeAndStreamMayEndInOneCall() throws {
        struct Whole: ConnectionFilter {
            func begin(_ output: inout FilterOutput) { output.send([7]) }
            func receive(_ bytes: RawSpan, _ output: inout FilterOutput) {
                output.deliver(bytes)
                output.becomeReady()
                output.endInput()
            }
            func write(_ bytes: RawSpan, _ output: inout FilterOutput) { output.send(bytes) }
        }
        let lines = connection.filter(Whole()).then { connection in
            connection.readLine().then { first in connection.readLine().map { second in [first, second] } }
        }
        try peer.send("a\nb\n")
        expectEqual(try hang(lines, timeout: patience), ["a", "b"])
        expectEqual(connection.read().settledValue, .end)
        // The peer's bytes after the end are discarded by the close, which does not reset it.
        try peer.send("more")
        let closed = connection.close()
        expect(closed.isPending)
        expectEqual(try peer.readToEnd(), [7])
        peer.close()
        hang(closed)
    }
}
