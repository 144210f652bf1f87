@testable import PromisesTestSupport

/// `close` and `abort`: what is delivered, what is discarded, and when the descriptor is closed.
struct CloseTests {
    @Test(.pair) func closeIsFulfilledWhenTheDescriptorIsClosed() throws {
        let fd = net.ledger.accepted[0]
        let closed = connection.close()
        expectEqual(try peer.receive(), [])
        net.settle()
        expect(closed.isPending && net.ledger.open.contains(fd))
        peer.close()
        try hang(closed, timeout: patience)
        expect(!net.ledger.open.contains(fd))
    }

    @Test(.pair) func abortDropsWhatIsQueuedAndResets() throws {
        let large = pattern(3 << 20)
        let writes = [
            connection.write(large), connection.write(large), connection.write("x"), connection.shutdownWrite(),
        ]
        let waiting = writes.filter(\.isPending)
        expect(waiting.count >= 3)
        connection.abort()
        connection.abort()
        expect(waiting.allSatisfy { code($0) == ECANCELED })
        expectEqual(peer.failureOfReading(), ECONNRESET)
        expectEqual(net.calls(.close), 2, "the listener's and the connection's")
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

    enum End: CaseIterable { case half, reset }

    @Test(.network(turns: 4000), arguments: End.allCases, [false, true])
    func aPeerThatEndsWhileItsAnswerWaits(_ end: End, _ filtered: Bool) throws {
        let (connection, peer) = try filtered ? net.filteredPair() : net.pair()
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
