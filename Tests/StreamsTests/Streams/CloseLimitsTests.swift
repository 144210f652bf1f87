import SimulatedNetwork

@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// The time limit of a close, and the progress that it requires of the peer.
struct CloseLimitsTests {
    /// The time of a close, during which the peer does `act` again and again.
    private func time(
        _ pair: SimulatedPair, every step: Duration, _ close: (Connection) -> Guarantee<Void> = { $0.close() },
        _ act: @escaping () -> Void
    ) -> Duration {
        let began = pair.network.now
        let timer = EventLoop.current.schedule(every: step, act)
        hang(close(pair.near))
        timer.cancel()
        return began.duration(to: pair.network.now)
    }

    @Test(arguments: [(1, Duration.seconds(5)), (2048, .seconds(30))])
    func aDripOfInputIsNoProgressAndASteadyPeerIsLeftAfterThirtySeconds(bytes: Int, limit: Duration) throws {
        try withSimulatedPair { pair in
            expectEqual(time(pair, every: .seconds(1)) { pair.far.write(pattern(bytes)).ignoringErrors() }, limit)
            expectEqual(try hang(pair.far.receive()), [])
        }
    }

    @Test func aLingerTimeIsTheWholeTimeWhateverThePeerSends() throws {
        try withSimulatedPair { pair in
            let time = time(pair, every: .milliseconds(100), { $0.close(linger: .milliseconds(500)) }) {
                pair.far.write(pattern(8192)).ignoringErrors()
            }
            expectEqual(time, .milliseconds(500))
            expectEqual(try hang(pair.far.receive()), [])
        }
    }

    @Test(arguments: [(100, Duration.seconds(5)), (65_536, .seconds(30))])
    func aPeerThatSipsAndASlowReaderAreReset(bytes: Int, limit: Duration) throws {
        try withSimulatedPair { pair in
            let write = pair.near.write(pattern(16 << 20))
            pair.network.run(for: .seconds(1))
            expectEqual(time(pair, every: .seconds(1)) { _ = pair.far.receive(upTo: bytes) }, limit)
            expectEqual(code(write), ECANCELED)
        }
    }

    /// Bytes that are no longer queued here are still on their way to the peer.
    @Test func aPeerThatStillTakesWhatTheKernelHasIsNotReset() throws {
        try withSimulatedPair { pair in
            let link = pair.network.link(from: pair.nearHost, to: pair.farHost)
            (link.bandwidth, link.cut) = (10_000, .segments(1448))
            try hang(pair.near.write(pattern(95_000)))
            // Ten seconds with progress; the check at 15 finds that there is no more.
            expectEqual(time(pair, every: .seconds(100)) {}, .seconds(15))
            expectEqual(try hang(readToEnd(pair.far)), pattern(95_000))
        }
    }

    /// A reset would destroy bytes that the kernel still has to deliver.
    @Test(.network(.virtual), arguments: [nil, Duration.seconds(2)])
    func whatTheKernelHasTakenReachesAPeerThatPauses(linger: Duration?) throws {
        let (connection, peer) = try net.pair(receiveBuffer: 4096)
        net.kernel.waitingBytes = { _, _ in 0 }
        let answer = pattern(60_000)
        try hang(connection.write(answer), timeout: patience)
        let end = connection.closed
        hang(linger.map { connection.close(linger: $0) } ?? connection.close())
        expectEqual(try peer.readToEnd(), answer)
        expectEqual(end.settledValue, .closed)
    }

    /// With unread input the kernel resets by itself.
    @Test(.network) func inputThatArrivesAtTheLimitDestroysNothing() throws {
        let (connection, peer) = try net.pair(receiveBuffer: 4096)
        let answer = pattern(60_000)
        try hang(connection.write(answer), timeout: patience)
        connection.close(linger: .seconds(1000))
        try net.deliver(pattern(100_000), from: peer)
        connection.close(linger: .zero)
        expectEqual(try peer.readToEnd(), answer)
    }

    @Test func anEndThatCameWhileTheLoopWasHeldIsNoReset() throws {
        try withSimulatedPair { pair in
            let closed = pair.near.close()
            pair.nearHost.pause(for: .seconds(60))
            pair.far.shutdownWrite()
            pair.network.run(for: .seconds(61))
            expect(closed.isFulfilled)
            expect(!pair.network.transcript.contains("RST"))
        }
    }

    @Test(.network(.virtual, turns: 4000)) func aPipeMayTakeItsTime() throws {
        let (reader, writer) = try Connection.pipe()
        let bytes = pattern(1 << 20)
        writer.write(bytes).cauterize()
        let closed = writer.close()
        var received: [UInt8] = []
        while closed.isPending {
            net.clock.advance(by: .seconds(4))
            received += try hang(reader.receive(upTo: 16_384))
            try net.loop.turn(.poll)
        }
        expect(net.clock.now > LoopInstant(nanoseconds: 60_000_000_000))
        expectEqual(received + (try hang(readToEnd(reader))), bytes)
    }

    @Test(arguments: [Duration.zero, .seconds(-1)]) func withoutPatienceWhatIsSentIsAllThereIs(patience none: Duration)
        throws
    {
        try withPair { _, connection, peer in
            connection.write("one").cauterize()
            let second = connection.write("two")
            expect(second.isPending)
            expect(connection.close(linger: none).isFulfilled)
            expect(second.isFulfilled)
            expectEqual(try peer.readToEnd(), Array("onetwo".utf8))
        }
        try withPair { _, connection, peer in
            let write = connection.write(pattern(8 << 20))
            expect(connection.close(linger: none).isFulfilled)
            expectEqual(code(write), ECANCELED)
            expectEqual(peer.failureOfReading(), ECONNRESET)
        }
    }

    @Test(.pair) func aSecondCloseMayBeLessPatient() throws {
        let closed = connection.close(linger: .seconds(1000))
        net.settle()
        expect(closed.isPending)
        expect(connection.close().isPending)
        expect(connection.close(linger: .zero).isFulfilled && closed.isFulfilled)
        expect(!net.loop.isAlive)
    }
}
