@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// `withNetwork` checks that none of these calls reaches the kernel under a number that may be another's.
struct UseAfterCloseTests {
    @Test(.pair, arguments: [false, true]) func everyOperationIsRefused(aborted: Bool) throws {
        peer.end()
        expectEqual(try hang(connection.read(), timeout: patience), .end)
        if aborted { connection.abort() } else { connection.close() }
        expect(!net.ledger.open.contains(net.ledger.accepted[0]))
        func calls() -> [SystemCall: Int] { net.loop.metrics.systemCalls.filter { $0.key != .epollWait } }
        let before = calls()

        expect(connection.isClosed)
        expectEqual(connection.read().settledValue, failed(EBADF))
        expectEqual(try rejection(of: connection.receive()), EBADF)
        expectEqual(code(connection.write("x")), EBADF)
        expectEqual(code(connection.write([UInt8]())), EBADF)
        expectEqual(code(connection.write([pattern(20_000), pattern(20_000)])), EBADF)
        let lent = [UInt8](repeating: 1, count: 2)
        expectEqual(code(connection.write(lent.span.bytes)), EBADF)
        expectEqual(code(connection.read(exactly: 1)), EBADF)
        expectEqual(code(connection.read(until: [0])), EBADF)
        expectEqual(code(connection.readLine()), EBADF)
        let chunks = connection.forEachChunk { _ in }
        expectEqual(code(chunks), EBADF)
        expect(connection.writable().isResolved && !connection.isWritable)
        expectEqual(code(connection.shutdownWrite()), EBADF)
        expect(connection.close().isFulfilled && connection.close(linger: .zero).isFulfilled)
        connection.abort()
        connection.idleTimeout = .seconds(1)
        expectEqual(connection.localAddress, nil)
        expect(connection.peerAddress != nil)
        expectEqual(connection.queuedBytes, 0)
        expectEqual(calls(), before)
    }

    @Test(.pair) func closingInTheReadsHandlerEndsReading() throws {
        try net.deliver("hello world", from: peer)
        var outcomes: [ReadOutcome] = []
        func readOn() {
            connection.read(upTo: 5).done {
                outcomes.append($0)
                connection.abort()
                if outcomes.count < 3 { readOn() }
            }
        }
        readOn()
        try net.loop.run(until: { outcomes.count == 3 })
        expectEqual(outcomes, [.bytes(Array("hello".utf8)), failed(EBADF), failed(EBADF)])
        expectEqual(net.calls(.receive), 1)
    }

    @Test(.pair) func closingInsideTheEventItselfEndsIt() throws {
        nonisolated(unsafe) let unsafeConnection = connection
        connection.writeQueueLimit = .max
        let writes = [connection.write(pattern(8 << 20)), connection.write("next")]
        let read = connection.read()
        try peer.send("input")
        // Inline, between the two halves of one event: writable and readable.
        writes[0].pipe { _ in unsafeConnection.abort() }
        let drained = elsewhere { peer.failureOfReading() }
        try hang(writes[0], timeout: patience)
        let second = try rejection(of: writes[1])
        expect(second == nil || second == ECANCELED)
        _ = try hang(read, timeout: patience)
        expectEqual(try hang(drained, timeout: patience), ECONNRESET)
    }

    @Test(.pair, arguments: [true, false]) func theHandlerOfAWriteThatFailsMayClose(byReset: Bool) throws {
        nonisolated(unsafe) let unsafeConnection = connection
        while connection.queuedBytes == 0 { _ = connection.write([UInt8](repeating: 0, count: 1 << 20)) }
        let waiting = connection.write([1])
        waiting.pipe { _ in unsafeConnection.close() }
        if byReset { peer.reset() } else { connection.abort() }
        let expected: [CInt?] = byReset ? [ECONNRESET, EPIPE] : [ECANCELED]
        expect(expected.contains(try rejection(of: waiting)))
        expect(connection.isClosed)
    }

    @Test(.pair) func theHandlerOfAReadThatIsCancelledMayAbort() throws {
        nonisolated(unsafe) let unsafeConnection = connection
        let read = connection.read()
        read.pipe { _ in unsafeConnection.abort() }
        connection.close()
        expectEqual(read.settledValue, failed(ECANCELED))
    }

    @Test(.network(.virtual)) func anEventOfAClosedConnectionDoesNotReachTheNextOwnerOfItsNumber() throws {
        let hole = try net.listen(backlog: 0)
        _ = try Peer(to: hole.localAddress)
        let (first, firstPeer) = try net.pair()
        let (second, secondPeer) = try net.pair()
        let (a, b) = (net.ledger.accepted[0], net.ledger.accepted[1])
        nonisolated(unsafe) let victim = second
        nonisolated(unsafe) var attempt: Promise<Connection>?
        let address = hole.localAddress

        let victimsRead = second.read()
        // Inline, so that the second event of the batch is still to come.
        first.read().pipe { _ in
            victim.abort()
            attempt = connect(to: address, timeout: .seconds(1))
        }
        // The next socket gets the number of the one that was closed, whatever other tests are doing.
        let real = net.kernel
        net.kernel.close = { $0 == b ? 0 : real.close($0) }
        net.kernel.socket = { family, type in
            let fresh = socket(family, CInt(type), 0)
            defer { close(fresh) }
            return Int(dup2(fresh, b))
        }
        try firstPeer.send("x")
        try secondPeer.send("x")
        awaitArrival(of: POLLIN, at: a)
        awaitArrival(of: POLLIN, at: b)
        try net.loop.turn(.poll)
        expectEqual(victimsRead.settledValue, failed(ECANCELED))
        let connecting = try #require(attempt)
        expect(connecting.isPending, "it has received its predecessor's event")
        net.kernel = real
        #expect(throws: PromiseError.timedOut) { try hang(connecting) }
    }
}
