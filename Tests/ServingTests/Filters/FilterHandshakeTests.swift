@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

private let hello = RecordFilter.record(.hello, [0x5A])

/// The start of a filter, until its connection can be used.
struct FilterHandshakeTests {
    @Test(.pair, arguments: 1...7) func theHandshakeMayArriveInPieces(size: Int) throws {
        net.limitReceives(to: size)
        let ready = connection.filter(RecordFilter())
        expectEqual(try peer.receive(exactly: 6), hello)
        try peer.send(hello + RecordFilter.data(Array("early".utf8)))
        expect(try hang(ready, timeout: patience) === connection)
        expectEqual(net.loop.nextDeadline, nil, "its timer has gone")
        expectEqual(try hang(connection.read(exactly: 5), timeout: patience), Array("early".utf8))
    }

    @Test(.pair) func nothingElseIsPossibleBeforeItIsReady() throws {
        let ready = connection.filter(RecordFilter())
        expectEqual(code(connection.write("x")), EBUSY)
        expectEqual(code(connection.write([[1], [2]])), EBUSY)
        expectEqual(code(connection.shutdownWrite()), EBUSY)
        expectEqual(try rejection(of: connection.receive()), EBUSY)
        expectEqual(code(connection.readLine()), EBUSY)
        expectEqual(code(connection.forEachChunk { _ in }), EBUSY)
        expectEqual(code(connection.filter(RecordFilter())), EBUSY)
        expect(!connection.isWritable && !connection.isClosed)
        try peer.send(hello)
        _ = try hang(ready, timeout: patience)
        expect(connection.isWritable)
        expectEqual(code(connection.filter(RecordFilter())), EBUSY)
    }

    @Test(.pair) func aFilterWithoutHandshakeIsReadyAtOnceAndCanBeAskedUntilTheEnd() throws {
        expect(connection.installedFilter == nil)
        expect(connection.filter(PlainFilter()).isFulfilled)
        try hang(connection.write("out"), timeout: patience)
        expectEqual(try peer.receive(exactly: 3), Array("out".utf8))
        try peer.send("in")
        expectEqual(try hang(connection.receive(), timeout: patience), Array("in".utf8))
        expectEqual((connection.installedFilter as? PlainFilter)?.received, 2)
        peer.end()
        expect(connection.receive(), failsWith: ConnectionFilterError.truncated)
        connection.abort()
        expect(connection.installedFilter == nil)
    }

    @Test(.pair(.virtual)) func aHandshakeThatNeverEndsIsTimedOut() throws {
        let begin = net.loop.now
        let ready = connection.filter(RecordFilter(), timeout: .seconds(3))
        try peer.send(Array(hello.prefix(5)))
        expect(ready, failsWith: PromiseError.timedOut)
        expectEqual(begin.duration(to: net.loop.now), .seconds(3))
        expectEqual(try peer.receive(exactly: 7), hello, "then the end")
        expect(connection.write("x"), failsWith: PromiseError.timedOut)
        expectEqual(connection.read().settledValue, failed(ETIMEDOUT))
        let closed = connection.closed
        connection.close()
        peer.close()
        let end = hang(closed)
        expectEqual(end, .failed(SystemError(.receive, ETIMEDOUT)))
        expectEqual(net.loop.nextDeadline, nil)
    }

    @Test(.pair(.virtual)) func inputThatIsInTimeIsReadBeforeTheDeadline() throws {
        let ready = connection.filter(RecordFilter(), timeout: .seconds(3))
        // The loop is blocked past the deadline.
        net.loop.enqueue {
            try? peer.send(hello)
            net.clock.advance(by: .seconds(4))
        }
        expect(try hang(ready, timeout: patience) === connection)
    }

    enum End: CaseIterable { case truncated, reset, garbage, cancelled, closed, aborted }

    /// What the peer has received is the hello, and an alert where the filter has failed; no end record, since nothing
    /// has begun.
    @Test(.pair, arguments: End.allCases) func itsEndRejectsTheHandshake(end: End) throws {
        let ready = connection.filter(RecordFilter())
        switch end {
        case .truncated:
            try peer.send(Array(hello.prefix(3)))
            peer.end()
            expect(ready, failsWith: ConnectionFilterError.truncated)
        case .reset:
            expectEqual(try peer.receive(exactly: 6), hello)
            peer.reset()
            expect(ready, failsWith: SystemError(.receive, ECONNRESET))
            return expectEqual(code(connection.write("x")), ECONNRESET)
        case .garbage:
            try peer.send("GET / HTTP/1.1\r\n\r\n")
            expect(ready, failsWith: RecordFilter.Flaw.unknownRecord(UInt8(ascii: "G")))
        case .cancelled:
            ready.cancel()
            expectEqual(ready.error?.isCancelled, true)
            expectEqual(code(connection.write("x")), ECANCELED)
            expectEqual(connection.read().settledValue, failed(ECANCELED))
        case .closed, .aborted:
            if end == .closed { connection.close() } else { connection.abort() }
            expect(ready, failsWith: SystemError(.receive, ECANCELED))
            if end == .aborted { return }
        }
        connection.close()
        expectEqual(try peer.readToEnd(), hello + (end == .garbage ? RecordFilter.record(.alert) : []))
    }

    @Test(.pair) func bufferedBytesAreItsFirstInputAndQueuedWritesLeaveBeforeIt() throws {
        try peer.send(Array("STARTTLS\n".utf8) + hello + RecordFilter.data(Array("injected?".utf8)))
        expectEqual(try hang(connection.readLine(), timeout: patience), "STARTTLS")
        expect(connection.bufferedByteCount > 0)
        let go = connection.write("go\n")
        let ready = connection.filter(RecordFilter())
        expect(ready.isFulfilled)
        expectEqual(try hang(connection.receive(), timeout: patience), Array("injected?".utf8))
        try hang(go, timeout: patience)
        expectEqual(try peer.receive(exactly: 9), Array("go\n".utf8) + hello)
    }

    @Test(.network) func whereAFilterCannotBeInstalled() throws {
        let pipe = try Connection.pipe()
        expectEqual(code(pipe.reader.filter(RecordFilter())), EBADF)
        let (a, b) = try Connection.pair()
        let read = a.read()
        expectEqual(code(a.filter(RecordFilter())), EBUSY)
        read.cancel()
        a.shutdownWrite()
        expectEqual(code(a.filter(RecordFilter())), EPIPE)
        expectEqual(try hang(b.read(), timeout: patience), .end)
        expectEqual(code(b.filter(RecordFilter())), EPIPE)
        a.abort()
        expectEqual(code(a.filter(RecordFilter())), EBADF)
    }

    @Test(.listener(.virtual)) func aDrainEndsAnIdleConnectionWithItsEndRecord() throws {
        let served = listener.serve { connection in
            connection.filter(RecordFilter()).then { connection in connection.forEachLine { connection.write($0) } }
        }
        let (idle, busy) = (try Peer(to: listener.localAddress), try Peer(to: listener.localAddress))
        let request = RecordFilter.data(Array("hi\n".utf8))
        try idle.send(hello)
        // The filter has a part of a record, which no read knows of.
        try busy.send(hello + Array(request.prefix(6)))
        let begun = net.calls(.receive)
        try net.loop.run(until: { listener.activeConnections == 2 && net.calls(.receive) - begun >= 2 })
        hang(after(.milliseconds(1)))
        let drained = listener.drain(deadline: .seconds(10))
        hang(after(.milliseconds(220)))
        expectEqual(try idle.readToEnd(), hello + RecordFilter.record(.end))
        idle.close()
        expectEqual(listener.activeConnections, 1)
        try busy.send(Array(request.dropFirst(6)))
        hang(after(.milliseconds(100)))
        let answer = hello + RecordFilter.data(Array("hi".utf8)) + RecordFilter.record(.end)
        expectEqual(try busy.readToEnd(), answer)
        busy.close()
        let result = hang(drained)
        expect(result.idle == 2 && result.aborted == 0)
        try hang(served, timeout: patience)
    }
}
