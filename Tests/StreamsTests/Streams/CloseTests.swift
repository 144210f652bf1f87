@testable import PromisesTestSupport

/// `close` and `abort`: what is delivered, what is discarded, and when the descriptor is closed.
struct CloseTests {
    @Test func unreadInputDoesNotDestroyTheReply() throws {
        try withPair { net, connection, peer in
            try peer.send("request")
            expectEqual(try hang(connection.read(), timeout: patience), .bytes(Array("request".utf8)))
            try net.deliver(pattern(1000), from: peer)
            let reply = pattern(4_000_000)
            let write = connection.write(reply)
            let closed = connection.close()
            let received = elsewhere {
                // More of it on the way.
                try peer.send(pattern(1000))
                let all = try peer.readToEnd()
                peer.close()
                return all
            }
            expectEqual(try hang(received, timeout: patience), reply)
            try hang(closed, timeout: patience)
            expect(write.isFulfilled)
        }
    }

    @Test func closeIsFulfilledWhenTheDescriptorIsClosed() throws {
        try withPair { net, connection, peer in
            let fd = net.ledger.accepted[0]
            let closed = connection.close()
            expectEqual(try peer.receive(), [])
            net.settle()
            expect(closed.isPending && net.ledger.open.contains(fd))
            peer.close()
            try hang(closed, timeout: patience)
            expect(!net.ledger.open.contains(fd))
        }
    }

    @Test func abortDropsWhatIsQueuedAndResets() throws {
        try withPair { net, connection, peer in
            let large = pattern(3 << 20)
            let writes = [connection.write(large), connection.write(large), connection.write("x")]
            let waiting = writes.filter(\.isPending)
            expect(waiting.count >= 2)
            connection.abort()
            connection.abort()
            expect(waiting.allSatisfy { code($0) == ECANCELED })
            expectEqual(peer.failureOfReading(), ECONNRESET)
            expectEqual(net.calls(.close), 2, "the listener's and the connection's")
        }
    }

    @Test func abortOvertakesClose() throws {
        try withPair { _, connection, peer in
            let write = connection.write(pattern(8 << 20))
            let closed = connection.close()
            connection.abort()
            expect(closed.isFulfilled)
            expectEqual(code(write), ECANCELED)
            expectEqual(peer.failureOfReading(), ECONNRESET)
        }
    }
}

struct CloseTimeoutTests {
    @Test func aPeerThatNeverEndsIsLeftToTheKernelAfterFiveSeconds() throws {
        try withPair(clock: VirtualClock()) { net, connection, peer in
            net.kernel.waitingBytes = { _, _ in 0 }
            let begin = net.loop.now
            let closed = connection.close()
            hang(closed)
            expectEqual(begin.duration(to: net.loop.now), .seconds(5))
            expectEqual(try peer.receive(), [])
            expect(!net.ledger.open.contains(net.ledger.accepted[0]))
            // No program reads the peer's bytes now: the kernel resets.
            try peer.send("x")
            awaitArrival(of: POLLHUP, at: peer.fd)
        }
    }

    @Test func aPeerThatTakesNothingIsResetAfterFiveSeconds() throws {
        try withPair(clock: VirtualClock()) { net, connection, peer in
            net.kernel.waitingBytes = { _, _ in 0 }
            // Bytes that the kernel itself takes may be acknowledged late, which would be progress.
            _ = net.limitSends(to: 100)
            let write = connection.write(pattern(8 << 20))
            let begin = net.loop.now
            hang(connection.close())
            expectEqual(begin.duration(to: net.loop.now), .seconds(5))
            expectEqual(code(write), ECANCELED)
            expectEqual(peer.failureOfReading(), ECONNRESET)
        }
    }

    @Test func aPeerThatTakesItSlowlyIsNotReset() throws {
        let clock = VirtualClock()
        try withPair(clock: clock, turns: 4000) { net, connection, peer in
            // More than the kernel could ever buffer.
            let large = pattern(64 << 20)
            let write = connection.write(large)
            let closed = connection.close()
            var received: [UInt8] = []
            for _ in 0..<4 {
                clock.advance(by: .seconds(4))
                received += try peer.receive(exactly: 2 << 20)
                awaitArrival(of: POLLOUT, at: net.ledger.accepted[0])
                try net.loop.turn(.poll)
                expect(closed.isPending)
            }
            peer.close()
            awaitArrival(of: POLLHUP, at: net.ledger.accepted[0])
            hang(closed)
            expectEqual(received, large[..<received.count].map { $0 })
            expect([ECONNRESET, EPIPE].contains(code(write)))
        }
    }

    /// Such as a client that sends its whole body before it reads the refusal.
    @Test func aPeerThatSendsFarMoreStillGetsTheAnswer() throws {
        try withPair(turns: 4000) { _, connection, peer in
            let answer = Array("413".utf8)
            try hang(connection.write(answer), timeout: patience)
            let received = elsewhere {
                try peer.send(pattern(4 << 20))
                let all = try peer.readToEnd()
                peer.close()
                return all
            }
            hang(connection.close())
            expectEqual(try hang(received, timeout: patience), answer)
        }
    }

    /// An answer that the kernel cannot hold.
    @Test(arguments: [false, true]) func aPeerThatSendsEverythingBeforeItReadsGetsALongAnswer(_ filtered: Bool) throws {
        try withPair(turns: 4000, madeBy: { filtered ? try $0.filteredPair() : try $0.pair() }) { _, connection, peer in
            let answer = pattern(4 << 20)
            let write = connection.write(answer)
            expect(write.isPending)
            let received = elsewhere {
                try peer.send(pattern(32 << 20))
                let all = try peer.readToEnd()
                peer.close()
                return all
            }
            let closed = connection.close()
            let all = try hang(received, timeout: patience)
            hang(closed)
            expect(write.isFulfilled)
            if filtered { expect(all.count > answer.count) } else { expectEqual(all, answer) }
        }
    }

    enum End: CaseIterable { case half, reset }

    /// The peer ends its side while its answer waits: the answer still arrives. A reset ends the connection.
    @Test(arguments: End.allCases, [false, true]) func aPeerThatEndsWhileItsAnswerWaits(_ end: End, _ filtered: Bool)
        throws
    {
        try withPair(turns: 4000, madeBy: { filtered ? try $0.filteredPair() : try $0.pair() }) { _, connection, peer in
            let write = connection.write(pattern(4 << 20))
            let closed = connection.close()
            if end == .reset { peer.reset() } else { peer.end() }
            let received = elsewhere { end == .reset ? [] : try peer.readToEnd() }
            let all = try hang(received, timeout: patience)
            hang(closed)
            expectEqual(write.isFulfilled, end == .half)
            expect(end == .reset ? write.isRejected : all.count >= 4 << 20)
        }
    }
}
