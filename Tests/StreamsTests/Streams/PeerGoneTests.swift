@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// A handler works without reading.
struct PeerGoneTests {
    private let reset = PeerGone.failed(SystemError(.receive, ECONNRESET))

    @Test(.pair) func theEndIsReportedWithoutAReadAndInputStays() throws {
        let gone = connection.peerGone()
        try peer.send("unread")
        // Input alone wakes nothing.
        awaitArrival(of: POLLIN, at: net.ledger.accepted[0])
        expect(net.turns { net.settle() } <= 3)
        expect(gone.isPending)
        peer.end()
        expectEqual(try hang(gone, timeout: patience), .ended)
        expectEqual(connection.peerGone().settledValue, .ended)
        // The end remains, and is reported once.
        expect(net.turns { net.settle() } <= 4)
        expectEqual(try hang(connection.read(), timeout: patience), .bytes(Array("unread".utf8)))
        expectEqual(try hang(connection.read(), timeout: patience), .end)
        expectEqual(connection.peerGone().settledValue, .ended)
        try hang(connection.write("answer"), timeout: patience)
        expectEqual(try peer.receive(exactly: 6), Array("answer".utf8))
    }

    @Test(.pair) func aResetIsReportedAndKeptForReadsAndWrites() throws {
        try net.deliver("unread", from: peer)
        let gone = connection.peerGone()
        try net.loop.turn(.poll)
        peer.reset()
        expectEqual(try hang(gone, timeout: patience), reset)
        expect(net.turns { net.settle() } <= 4)
        expectEqual(code(connection.write("x")), ECONNRESET)
        expectEqual(try hang(connection.read(), timeout: patience), .bytes(Array("unread".utf8)))
        expectEqual(try hang(connection.read(), timeout: patience), failed(ECONNRESET))
        expectEqual(connection.peerGone().settledValue, reset)
    }

    @Test(.pair) func aHalfCloseIsIgnoredByChoiceAndTheResetIsNot() throws {
        let (end, reset) = (connection.peerGone(), connection.peerGone(ignoringHalfClose: true))
        peer.end()
        expectEqual(try hang(end, timeout: patience), .ended)
        expect(net.turns { net.settle() } <= 4)
        expect(reset.isPending)
        expectEqual(try hang(connection.read(), timeout: patience), .end)
        let again = connection.peerGone(ignoringHalfClose: true)
        expect(net.turns { net.settle() } <= 4)
        expect(again.isPending)
        peer.reset()
        guard case .failed(let error) = try hang(reset, timeout: patience) else {
            Issue.record("no error")
            return
        }
        // A reset after the end is a broken pipe to the kernel.
        expect([EPIPE, ECONNRESET].contains(error.code))
        expectEqual(again.settledValue, .failed(error))
    }

    @Test(.pair) func whenBothSidesHaveEndedThePeerIsGone() throws {
        let gone = connection.peerGone(ignoringHalfClose: true)
        connection.shutdownWrite()
        peer.end()
        expectEqual(try hang(gone, timeout: patience), .ended)
        expect(net.turns { net.settle() } <= 4)
    }

    @Test(.pair) func aReadMayWaitBesides() throws {
        let gone = connection.peerGone()
        var read = connection.read()
        try peer.send("x")
        expectEqual(try hang(read, timeout: patience), .bytes([0x78]))
        read = connection.read()
        peer.end()
        expectEqual(try hang(read, timeout: patience), .end)
        expectEqual(try hang(gone, timeout: patience), .ended)

        let (other, resetting) = try net.pair()
        let (reset, last) = (other.peerGone(), other.read())
        resetting.reset()
        expectEqual(try hang(last, timeout: patience), failed(ECONNRESET))
        expectEqual(try hang(reset, timeout: patience), self.reset)
        expect(net.turns { net.settle() } <= 4)
    }

    @Test(.network) func cancellingEndsTheWatchAndTheConnectionIsReleased() throws {
        weak var released: Connection?
        do {
            let (connection, peer) = try net.pair()
            released = connection
            let (one, other) = (connection.peerGone(), connection.peerGone(ignoringHalfClose: true))
            expect("\(net.loop.keepAliveReport)".contains("for the peer's end: Connection"))
            one.cancel()
            peer.end()
            expect(net.turns { net.settle() } <= 4)
            expect(one.asPromise().isCancelled)
            other.cancel()
        }
        expect(released == nil)
        expectEqual("\(net.loop.keepAliveReport)", "nothing")
    }

    /// None of them is caused by the peer.
    @Test(.network) func closingAbortingAndDetachingCancelTheWatch() throws {
        func waiting() throws -> (Connection, Peer, Guarantee<PeerGone>) {
            let (connection, peer) = try net.pair()
            return (connection, peer, connection.peerGone())
        }
        var calls = 0
        let (a, _, closed) = try waiting()
        closed.done { _ in calls += 1 }
        a.close(linger: .zero)
        let (b, _, aborted) = try waiting()
        aborted.done { _ in calls += 1 }
        b.abort()
        let (c, _, detached) = try waiting()
        detached.done { _ in calls += 1 }
        try Connection(adopting: c.detach()).abort()
        for connection in [a, b, c] {
            let late = connection.peerGone()
            late.done { _ in calls += 1 }
            expect(late.asPromise().isCancelled)
            let refused = connection.cancelWhenPeerGone { () -> Promise<Void> in
                Issue.record("called")
                return .value
            }
            expectEqual(code(refused), EBADF)
        }
        net.settle()
        expect([closed, aborted, detached].allSatisfy { $0.asPromise().isCancelled } && calls == 0)
    }

    @Test(.network) func pipesTellOfTheirOtherEnd() throws {
        let (reader, writer) = try Connection.pipe()
        try hang(writer.write("x"), timeout: patience)
        let ended = reader.peerGone()
        writer.abort()
        expectEqual(try hang(ended, timeout: patience), .ended)
        expectEqual(try hang(reader.read(), timeout: patience), .bytes([0x78]))
        reader.abort()
        let (other, sink) = try Connection.pipe()
        let broken = sink.peerGone()
        other.abort()
        expectEqual(try hang(broken, timeout: patience), .failed(SystemError(.write, EPIPE)))
        expect(net.turns { net.settle() } <= 4)
    }

    @Test(.pair, arguments: [true, false]) func theWorkIsCancelledWhenThePeerGoes(byReset: Bool) throws {
        var cancelled = false
        let (work, resolver) = Promise<Int>.pending()
        resolver.onCancel { cancelled = true }
        let answer = connection.cancelWhenPeerGone { work }
        if byReset { peer.reset() } else { peer.end() }
        try hang(answer.asVoid().recover { _ in .value }, timeout: patience)
        expect(answer.error as? PeerGone == (byReset ? reset : .ended))
        try net.loop.turn(.poll)
        expect(cancelled && work.isCancelled)
        // An end that is already known starts nothing. (It is known once it has been read.)
        if !byReset { expectEqual(try hang(connection.read(), timeout: patience), .end) }
        let late = connection.cancelWhenPeerGone { () -> Promise<Int> in
            Issue.record("called")
            return .value(1)
        }
        expect(late.error as? PeerGone == (byReset ? reset : .ended))
    }

    @Test(.network) func theWatchEndsWithTheWork() throws {
        weak var released: Connection?
        do {
            let (connection, peer) = try net.pair()
            released = connection
            let answer = connection.cancelWhenPeerGone { after(.milliseconds(1)).map { 7 } }
            expectEqual(try hang(answer, timeout: patience), 7)
            let withdrawn = connection.cancelWhenPeerGone { Promise<Int>.pending().promise.timeout(.seconds(60)) }
            withdrawn.cancel()
            try net.loop.turn(.poll)
            expect(withdrawn.isCancelled)
            struct Refused: Error {}
            let thrown = connection.cancelWhenPeerGone { () throws -> Promise<Int> in throw Refused() }
            expect(thrown.error is Refused)
            thrown.cauterize()
            peer.end()
            expect(net.turns { net.settle() } <= 4)
        }
        expect(released == nil)
    }

    @Test(.pair) func closingHereDoesNotCancelTheWork() throws {
        let answer = connection.cancelWhenPeerGone { after(.milliseconds(5)).map { 7 } }
        connection.close()
        peer.close()
        expectEqual(try hang(answer, timeout: patience), 7)
    }

    @Test(.pair) func eachRequestOfAConnectionCostsNoRegistration() throws {
        func serve() throws {
            try peer.send("x")
            expectEqual(try hang(connection.read(), timeout: patience), .bytes([0x78]))
            try hang(connection.cancelWhenPeerGone { after(.milliseconds(1)) }, timeout: patience)
        }
        for _ in 0..<2 { try serve() }
        let before = net.calls(.epollControl)
        for _ in 0..<5 { try serve() }
        expectEqual(net.calls(.epollControl), before)
    }

    /// As with pipelined requests, each cancelled when its client leaves.
    @Test(.pair) func fiftyThousandWatchesEndOneByOne() throws {
        var ended: [Int] = []
        let (work, resolver) = Promise<Void>.pending()
        let rest = (0..<3).map { number in
            connection.cancelWhenPeerGone { work }.tapError(policy: .allErrors) { _ in ended.append(number) }
        }
        expectProportional(50_000) { count in
            let watches = (0..<count).map { connection.peerGone(ignoringHalfClose: $0 % 2 == 0) }
            // Neither from the front nor from the back.
            for index in 0..<count { watches[index * 7919 % count].cancel() }
        }
        peer.end()
        for each in rest { #expect(throws: PeerGone.ended) { try hang(each, timeout: patience) } }
        expectEqual(ended, [0, 1, 2], "in their order")
        resolver.fulfill(())
    }
}
