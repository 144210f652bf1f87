@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// The number of bytes that the error of a read names, if a limit of `frameTimeouts` ends it.
func timeout<T>(of promise: Promise<T>) throws -> Int? {
    try hang(promise.asVoid().recover(policy: .allErrors) { _ in .value })
    guard case StreamError.timedOut(let got)? = promise.error else { return nil }
    return got
}

/// Virtual time: sent bytes have arrived before the clock moves.
struct FrameTimeoutTests {
    private let limits = FrameTimeouts(idle: .seconds(60), frame: .seconds(10))

    @Test(.pair(.virtual)) func silenceBetweenFramesIsIdleAndTheConnectionStaysUsable() throws {
        connection.frameTimeouts = limits
        let begin = net.loop.now
        expectEqual(try timeout(of: connection.readLine()), 0)
        expectEqual(begin.duration(to: net.loop.now), .seconds(60))
        try hang(connection.write("bye"))
        expectEqual(try peer.receive(exactly: 3), Array("bye".utf8))
        try net.deliver("late\n", from: peer)
        expectEqual(try hang(connection.readLine()), "late")
    }

    /// The poller has no handler for the descriptor then, since its event is being delivered.
    @Test(.network(.virtual)) func aLimitIsReachedWhileAFilterTurnsTheLoop() throws {
        let filter = RecordFilter()
        let (connection, peer) = try net.filteredPair(filter)
        connection.frameTimeouts = limits
        filter.onStep = { _, _ in hang(after(.seconds(70))) }
        let read = connection.readLine()
        try net.deliver(RecordFilter.record(.pong), from: peer)
        try net.loop.turn(.poll)
        connection.abort()
        expectEqual(try timeout(of: read), 0)
    }

    @Test(.pair(.virtual)) func aFrameCountsFromItsFirstByteHoweverItDrips() throws {
        connection.frameTimeouts = limits
        for form in 0..<3 {
            let read: Promise<Void> =
                switch form {
                case 0: connection.readLine().asVoid()
                case 1: connection.read(exactly: 100).asVoid()
                default: connection.forEachLine { _ -> Promise<Void> in .value }
                }
            hang(after(.seconds(50)))
            for second in 0..<9 {
                try net.deliver("x", from: peer)
                try net.loop.turn(.poll)
                if second < 8 { hang(after(.seconds(1))) }
            }
            let last = net.loop.now
            expectEqual(try timeout(of: read), 9)
            expectEqual(last.duration(to: net.loop.now), .seconds(2))
            expectEqual(try hang(connection.receive()), [UInt8](repeating: 0x78, count: 9))
        }
    }

    @Test(.pair(.virtual, turns: 4000)) func eachFrameCountsAnewAndTheTimerIsMovedSeldom() throws {
        connection.frameTimeouts = limits
        var lines = 0
        let all = connection.forEachLine { _ -> Promise<Void> in
            lines += 1
            return .value
        }
        // Each packet ends a line and begins the next.
        for _ in 0..<100 {
            try net.deliver("x\nx", from: peer)
            try net.loop.turn(.poll)
            net.clock.advance(by: .seconds(6))
            try net.loop.turn(.poll)
        }
        expect(lines == 100 && all.isPending)
        expect(net.loop.metrics.timersFired <= 100, "600 seconds of ten")
        expectEqual(try timeout(of: all), 1)
    }

    @Test(.pair(.virtual)) func whatTheHandlerTakesDoesNotCount() throws {
        connection.frameTimeouts = limits
        try net.deliver("one\ntw", from: peer)
        let all = connection.forEachLine { _ in after(.seconds(300)).asPromise() }
        let begin = net.loop.now
        expectEqual(try timeout(of: all), 2)
        expectEqual(begin.duration(to: net.loop.now), .seconds(310))
    }

    @Test(.pair(.virtual)) func limitsCanBeChangedAndTakenAway() throws {
        connection.frameTimeouts = nil
        expectEqual(connection.frameTimeouts, nil)
        connection.frameTimeouts = limits
        expectEqual(connection.frameTimeouts, limits)
        let read = connection.readLine()
        let begin = net.loop.now
        connection.frameTimeouts?.idle = .seconds(5)
        expectEqual(try timeout(of: read), 0)
        expectEqual(begin.duration(to: net.loop.now), .seconds(5))
        connection.frameTimeouts = FrameTimeouts(idle: .zero, frame: nil)
        let endless = connection.readLine()
        hang(after(.seconds(1000)))
        expect(endless.isPending)
        connection.frameTimeouts = limits
        connection.frameTimeouts = nil
        hang(after(.seconds(1000)))
        expect(endless.isPending)
        endless.catch { _ in }
    }

    @Test(.pair(.virtual)) func aPendingReadOfBytesHasNone() throws {
        let read = connection.receive()
        connection.frameTimeouts = limits
        hang(after(.seconds(100)))
        try net.deliver("x", from: peer)
        expectEqual(try hang(read), [0x78])
    }

    enum End: CaseIterable { case abort, detach, release }

    @Test(.network(.virtual), arguments: End.allCases) func theTimerKeepsNoLoopAndEndsWithItsConnection(
        end: End
    ) throws {
        let peer: Peer
        do {
            let (connection, other) = try net.pair()
            peer = other
            connection.frameTimeouts = limits
            connection.readLine().cancel()
            try net.loop.run()
            expect(net.loop.now.nanoseconds == 0 && net.loop.nextDeadline != nil)
            switch end {
            case .abort: connection.abort()
            case .detach: try Connection(adopting: connection.detach()).abort()
            case .release: break
            }
        }
        expectEqual(net.loop.nextDeadline, nil)
        peer.close()
    }

    @Test(.pair(.virtual)) func aReadThatContinuesALateFrameGetsTheWholeTimeAgain() throws {
        connection.frameTimeouts = limits
        try net.deliver("half", from: peer)
        for _ in 0..<3 {
            let begin = net.loop.now
            expectEqual(try timeout(of: connection.readLine()), 4)
            expectEqual(begin.duration(to: net.loop.now), .seconds(10))
        }
    }
}
