@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// `close`, `abort` and `shutdownWrite`: what is delivered, when the descriptor is closed, and what `closed` says.
struct CloseTests {
    enum Way: CaseIterable {
        case orderly, atOnce, aborted, limitReached, failedAndAborted, failedAndClosed, failedWhileClosing, detached
    }

    @Test(.pair, arguments: Way.allCases) func closedSaysHowItHasEnded(way: Way) throws {
        let fd = net.ledger.accepted[0]
        let (closed, again) = (connection.closed, connection.closed)
        let reset = ConnectionEnd.failed(SystemError(.receive, ECONNRESET))
        var expected = ConnectionEnd.closed
        switch way {
        case .orderly:
            let isDone = connection.close()
            expectEqual(try peer.receive(), [])
            net.settle()
            expect(connection.isClosed && closed.isPending && isDone.isPending && net.ledger.open.contains(fd))
            peer.close()
            try hang(isDone, timeout: patience)
        case .atOnce: connection.close(linger: .zero)
        case .aborted:
            connection.abort()
            expected = .aborted
        case .limitReached:
            net.limitSends(to: 100)
            connection.write(pattern(200)).ignoringErrors()
            connection.close(linger: .zero)
            expected = .aborted
        case .failedAndAborted, .failedAndClosed:
            peer.reset()
            expectEqual(try hang(connection.read(), timeout: patience), failed(ECONNRESET))
            expect(closed.isPending)
            if way == .failedAndAborted { connection.abort() } else { connection.close() }
            expected = reset
        case .failedWhileClosing:
            connection.close()
            peer.reset()
            expected = reset
        case .detached:
            try Connection(adopting: connection.detach()).abort()
            expected = .detached
        }
        expectEqual(try hang(closed, timeout: patience), expected)
        expectEqual([again.settledValue, connection.closed.settledValue], [expected, expected])
        expect(!net.ledger.open.contains(fd) && connection.localAddress == nil)
    }

    @Test func theLoopsEndIsAnEnd() throws {
        var (waiting, kept): (Guarantee<ConnectionEnd>?, Connection?)
        var unused: Guarantee<ConnectionEnd>?
        try EventLoop.withLoop { _ throws in
            let (one, other) = try Connection.pair()
            _ = one.read()
            waiting = one.closed
            (kept, unused) = (other, other.closed)
        }
        expectEqual(waiting?.settledValue, .loopEnded)
        expectEqual(kept?.isClosed, false)
        kept = nil
        expectEqual(unused?.settledValue, .loopEnded)
    }

    @Test(.network) func closedDoesNotRetainTheConnection() throws {
        let closed = try net.pair().0.closed
        expectEqual(closed.settledValue, .closed)
        expectEqual("\(net.loop.keepAliveReport)", "nothing")
    }

    @Test(.network) func endingAPipesWriterClosesIt() throws {
        let (reader, writer) = try Connection.pipe()
        let closed = writer.closed
        try hang(writer.shutdownWrite(), timeout: patience)
        expectEqual(closed.settledValue, .closed)
        expectEqual([code(writer.write("x")), code(reader.shutdownWrite())], [EPIPE, EBADF])
    }

    @Test(.pair, arguments: [false, true]) func whatIsQueuedComesBeforeTheEnd(closes: Bool) throws {
        let large = pattern(8 << 20)
        let write = connection.write(large)
        let (ended, again) = (connection.shutdownWrite(), connection.shutdownWrite())
        expect(connection.queuedBytes > 0 && ended.isPending && again.isPending)
        expectEqual(code(connection.write("late")), EPIPE)
        let closed = closes ? connection.close() : nil
        expectEqual(net.calls(.shutdown), 0)
        let received = elsewhere {
            let all = try peer.readToEnd()
            peer.close()
            return all
        }
        try hang(when(fulfilled: [write, ended, again]), timeout: patience)
        expectEqual(try hang(received, timeout: patience), large)
        if let closed {
            try hang(closed, timeout: patience)
        } else {
            try hang(connection.shutdownWrite(), timeout: patience)
            expectEqual(code(connection.write("late")), EPIPE)
        }
        expectEqual(net.calls(.shutdown), 1)
    }

    @Test(.network(turns: 4000), arguments: [false, true], [3, 4 << 20])
    func aPeerThatSendsEverythingBeforeItReadsGetsTheAnswer(_ filtered: Bool, size: Int) throws {
        let (connection, peer) = try filtered ? net.filteredPair() : net.pair()
        let answer = pattern(size)
        let write = connection.write(answer)
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

    @Test(.network(turns: 4000), arguments: [false, true], [false, true])
    func aPeerThatEndsWhileItsAnswerWaits(byReset: Bool, _ filtered: Bool) throws {
        let (connection, peer) = try filtered ? net.filteredPair() : net.pair()
        let write = connection.write(pattern(4 << 20))
        let closed = connection.close()
        if byReset { peer.reset() } else { peer.end() }
        let received = elsewhere { byReset ? [] : try peer.readToEnd() }
        let all = try hang(received, timeout: patience)
        hang(closed)
        expect(byReset ? write.isRejected : write.isFulfilled && all.count >= 4 << 20)
    }
}
