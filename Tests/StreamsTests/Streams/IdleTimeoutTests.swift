@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// Virtual time: sent bytes have arrived before the clock moves.
struct IdleTimeoutTests {
    @Test(.pair(.virtual)) func trafficKeepsItOpenAndSilenceEndsIt() throws {
        let fd = net.ledger.accepted[0]
        connection.idleTimeout = .milliseconds(100)
        for _ in 0..<100 {
            net.clock.advance(by: .milliseconds(10))
            try peer.send("x")
            awaitArrival(of: POLLIN, at: fd)
            expectEqual(hang(connection.read()), .bytes([0x78]))
        }
        // A second of ten periods, and a hundred messages.
        expect(net.loop.metrics.timersFired <= 12, "the timer moves with every message")
        let last = net.clock.now
        expectEqual(hang(connection.read()), failed(ETIMEDOUT))
        expectEqual(last.duration(to: net.clock.now), .milliseconds(100))
        expectEqual(connection.read().settledValue, failed(ETIMEDOUT))
        expectEqual(code(connection.write("x")), ETIMEDOUT)
        expect(net.ledger.open.contains(fd), "closing is the owner's")
        expect(connection.close().isFulfilled)
    }

    @Test(.pair(.virtual)) func writingIsActivity() throws {
        connection.idleTimeout = .milliseconds(100)
        for _ in 0..<20 {
            hang(after(.milliseconds(90)))
            try hang(connection.write("x"))
        }
        let last = net.loop.now
        let read = connection.read()
        expectEqual(hang(read), failed(ETIMEDOUT))
        expectEqual(last.duration(to: net.loop.now), .milliseconds(100))
        expectEqual(try peer.receive(exactly: 20).count, 20)
    }

    @Test(.pair(.virtual)) func aWriteThatIsStuckIsNot() throws {
        connection.idleTimeout = .milliseconds(100)
        connection.writeQueueLimit = .max
        let writes = [connection.write(pattern(8 << 20)), connection.write("more")]
        let ended = connection.shutdownWrite()
        let begin = net.loop.now
        for write in writes + [ended] { expectEqual(try rejection(of: write), ETIMEDOUT) }
        expectEqual(begin.duration(to: net.loop.now), .milliseconds(100))
        expect(net.turns { net.settle() } <= 4)
        // The peer must not take the part that it can read for the whole.
        expect(connection.close().isFulfilled)
        expectEqual(peer.failureOfReading(), ECONNRESET)
    }

    @Test(.pair(.virtual)) func aNewTimeoutCountsFromNowAndNoneIsNoLimit() throws {
        connection.idleTimeout = .milliseconds(100)
        hang(after(.milliseconds(90)))
        connection.idleTimeout = .milliseconds(200)
        let read = connection.read()
        hang(after(.milliseconds(190)))
        expect(read.isPending)
        connection.idleTimeout = nil
        hang(after(.seconds(3600)))
        expect(read.isPending)
        connection.idleTimeout = .milliseconds(100)
        hang(after(.milliseconds(100)))
        // Bytes that arrived in time get a turn to be read.
        try net.loop.turn(.poll)
        expectEqual(read.settledValue, failed(ETIMEDOUT))
    }

    @Test(.network(.virtual)) func whatATurnHasFetchedIsReadBeforeAnotherInItsMidstLooksAtTheTime() throws {
        let (near, far) = try Connection.pair()
        let descriptor = try near.detach()
        let (connection, peer) = try net.pair()
        connection.idleTimeout = .milliseconds(100)
        let read = connection.read()
        var watch: EventLoop.Watch?
        watch = try net.loop.watch(descriptor, for: .reading) { _ in
            watch?.cancel()
            hang(after(.zero))
        }
        try net.loop.turn(.poll)
        try hang(far.write("x"))
        try net.deliver("y", from: peer)
        net.clock.advance(by: .milliseconds(150))
        expectEqual(try hang(read, timeout: patience), .bytes([0x79]))
        try Connection(adopting: descriptor).abort()
    }

    @Test(.pair(.virtual)) func aClosedConnectionHasNone() throws {
        connection.idleTimeout = .milliseconds(100)
        connection.abort()
        try net.loop.run()
        expectEqual(net.loop.now, LoopInstant(nanoseconds: 0))
        expectEqual(peer.failureOfReading(), ECONNRESET)
    }

    @Test(.network(.virtual)) func theTimerDoesNotKeepTheConnection() throws {
        let peer = try {
            let (connection, peer) = try net.pair()
            connection.idleTimeout = .seconds(100)
            return peer
        }()
        expect(!net.ledger.open.contains(net.ledger.accepted[0]))
        expectEqual(try peer.receive(), [])
    }

    @Test(.pair(.virtual)) func aConnectionOnWhichNothingWaitsFailsToo() throws {
        connection.idleTimeout = .milliseconds(100)
        hang(after(.milliseconds(150)))
        try peer.send("late")
        expectEqual(connection.read().settledValue, failed(ETIMEDOUT))
        expectEqual(code(connection.write("x")), ETIMEDOUT)
    }
}
