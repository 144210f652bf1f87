@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// A loop that is blocked for longer than a deadline, and then finds the input that has arrived meanwhile.
struct InputBeforeDeadlinesTests {
    /// Interrupts the next calls of epoll_wait.
    private func interruptWaits(_ count: Int) {
        let real = net.kernel.epollWait
        var left = count
        net.kernel.epollWait = { epoll, events, capacity, timeout in
            left -= 1
            return left >= 0 ? -Int(EINTR) : real(epoll, events, capacity, timeout)
        }
    }

    @Test(
        .network(.virtual),
        .enabled(if: mayHaveDescriptors(2000), "the hard limit of descriptors is below 2,000"),
        arguments: [0, 1, 2, 5], [true, false])
    func noneOfManyConnectionsIsLate(interruptions: Int, isIdle: Bool) throws {
        let pairs = try (0..<450).map { _ in try Connection.pair() }
        let reads = pairs.map { connection, _ -> Promise<[UInt8]> in
            if !isIdle { return connection.receive().timeout(.milliseconds(500)) }
            connection.idleTimeout = .milliseconds(500)
            return connection.receive()
        }
        try net.loop.turn(.poll)
        for (_, far) in pairs { expect(far.write("x").isFulfilled) }
        net.clock.advance(by: .milliseconds(800))
        interruptWaits(interruptions)
        expectEqual(try hang(when(fulfilled: reads), timeout: .milliseconds(100)).count, 450)
    }

    @Test(.network(.virtual)) func aHandlerThatHoldsTheLoopWhileEventsAreDeliveredCostsNoAnswer() throws {
        let pairs = try (0..<3).map { _ in try Connection.pair() }
        pairs[0].0.forEachChunk { _ -> Promise<Void> in
            // Input that arrives now is not in any batch of events yet.
            for (_, far) in pairs[1...] { expect(far.write("y").isFulfilled) }
            net.clock.advance(by: .milliseconds(800))
            return .value
        }.ignoringErrors()
        pairs[1].0.idleTimeout = .milliseconds(500)
        let idle = pairs[1].0.receive()
        let limited = pairs[2].0.receive().timeout(.milliseconds(500))
        try net.loop.turn(.poll)
        expect(pairs[0].1.write("x").isFulfilled)
        expect(try hang(when(fulfilled: idle, limited), timeout: .seconds(1)) == ([0x79], [0x79]))
    }

    @Test(.network(.virtual)) func activityInsideALongTurnCountsFromItsOwnMoment() throws {
        let (slow, farFromSlow) = try Connection.pair()
        let (idle, farFromIdle) = try Connection.pair()
        idle.idleTimeout = .milliseconds(500)
        slow.forEachChunk { _ in net.clock.advance(by: .milliseconds(400)) }.ignoringErrors()
        let read = idle.receive()
        try net.loop.turn(.poll)
        for far in [farFromSlow, farFromIdle] { expect(far.write("x").isFulfilled) }
        try hang(read, timeout: .seconds(1))
        let readAt = net.clock.now
        expectEqual(hang(idle.read()), failed(ETIMEDOUT))
        expectEqual(readAt.duration(to: net.clock.now), .milliseconds(500))
    }

    @Test(.network(.virtual)) func anAnswerThatIsReadyAfterAStallIsSent() throws {
        let (connection, far) = try Connection.pair()
        connection.idleTimeout = .milliseconds(500)
        let answered = after(.milliseconds(50)).then { after(.zero) }.then { connection.write("answer") }
        try net.loop.turn(.poll)
        net.clock.advance(by: .milliseconds(800))
        try hang(answered, timeout: .seconds(1))
        withExtendedLifetime(far) {}
    }

    enum Limit: CaseIterable { case idleTimeout, idle, frame, message, handshake }

    /// A loop that is blocked past a deadline has not read what its peer would have sent on, and has answered late: the
    /// peer gets the time that was lost.
    @Test(.pair(.virtual), arguments: Limit.allCases, [false, true])
    func aDelayOfTheLoopIsNotThePeers(limit: Limit, isTooLate: Bool) throws {
        let time = Duration.milliseconds(500)
        func read(_ timeouts: FrameTimeouts, after bytes: String) throws -> Promise<Void> {
            connection.frameTimeouts = timeouts
            connection.beginMessage()
            if !bytes.isEmpty { try net.deliver(bytes, from: peer) }
            return connection.readLine().asVoid()
        }
        var rest = Array("b\n".utf8)
        let waiting: Promise<Void>
        switch limit {
        case .idleTimeout:
            connection.idleTimeout = time
            waiting = connection.receive().asVoid()
        case .idle: waiting = try read(FrameTimeouts(idle: time), after: "")
        case .frame: waiting = try read(FrameTimeouts(frame: time), after: "a")
        case .message: waiting = try read(FrameTimeouts(message: time), after: "a")
        case .handshake:
            rest = RecordFilter.record(.hello, [0x5A])
            waiting = connection.filter(RecordFilter(), timeout: time).asVoid()
        }
        try net.loop.turn(.poll)
        let begin = net.loop.now
        net.loop.enqueue { net.clock.advance(by: .milliseconds(800)) }
        // 300 are lost.
        after(.milliseconds(isTooLate ? 1200 : 1000)).done { try? net.deliver(rest, from: peer) }
        try hang(waiting.recover(policy: .allErrors) { _ in .value }, timeout: .seconds(60))
        expectEqual(waiting.isFulfilled, !isTooLate)
        expectEqual(begin.duration(to: net.loop.now), .milliseconds(isTooLate ? 1100 : 1000))
    }

    @Test(.pair(.virtual), arguments: [false, true]) func aDelayOfTheLoopDoesNotShortenAClose(isTooLate: Bool) throws {
        let begin = net.loop.now
        let closed = connection.close(linger: .milliseconds(500))
        try net.loop.turn(.poll)
        net.loop.enqueue { net.clock.advance(by: .milliseconds(800)) }
        after(.milliseconds(isTooLate ? 1200 : 1000)).done { peer.end() }
        try hang(closed, timeout: .seconds(60))
        expectEqual(begin.duration(to: net.loop.now), .milliseconds(isTooLate ? 1100 : 1000))
    }

    /// The limit's own look at the kernel finds the end, and releases the last reference to the connection.
    @Test(.network(.virtual)) func aPeerMayEndAtTheLimitOfAClose() throws {
        let (closed, peer) = try closing(linger: .milliseconds(500))
        try net.loop.turn(.poll)
        net.loop.enqueue { net.clock.advance(by: .milliseconds(800)) }
        after(.milliseconds(1100)).done { _ = peer.close() }
        try hang(closed, timeout: .seconds(60))
    }

    /// - Returns: the promise of the close, and the other end. Only the loop retains the connection.
    private func closing(linger: Duration) throws -> (Guarantee<Void>, Connection) {
        let (connection, far) = try Connection.pair()
        return (connection.close(linger: linger), far)
    }

    @Test(.network(.virtual), arguments: [0, 5]) func aClosingConnectionWhosePeerHasMadeRoomIsNotReset(
        interruptions: Int
    ) throws {
        let (connection, far) = try Connection.pair()
        let peer = try far.detach()
        let bytes = pattern(3 << 20)
        let written = connection.write(bytes)
        expect(connection.queuedBytes > 0)
        let closed = connection.close()
        try net.loop.turn(.poll)
        var received = 0
        var buffer = [UInt8](repeating: 0, count: 65536)
        func take() {
            while true {
                let count = recv(peer, &buffer, buffer.count, CInt(MSG_DONTWAIT))
                if count <= 0 { return }
                received += count
            }
        }
        take()
        net.clock.advance(by: .seconds(6))
        interruptWaits(interruptions)
        while closed.isPending {
            try net.loop.turn(.poll)
            take()
            if written.isFulfilled { _ = shutdown(peer, CInt(SHUT_WR)) }
        }
        expect(written.isFulfilled)
        expectEqual(received, bytes.count)
        try Connection(adopting: peer).abort()
    }
}
