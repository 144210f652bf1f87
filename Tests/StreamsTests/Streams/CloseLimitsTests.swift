import Glibc
import Promises
import Reactor
import TestSupport
import Testing

@testable import PromisesTestSupport

/// The time limit of a close, and the progress that it requires of the peer.
@Suite struct CloseLimitsTests {
    /// Lets `step` pass on the clock and then calls `act`, repeatedly, until `closed` is fulfilled.
    /// - Returns: the time that this took.
    private func time(
        of closed: Guarantee<Void>, _ net: Network, _ clock: VirtualClock, every step: Duration,
        _ act: () throws -> Void
    ) throws -> Duration {
        let begin = clock.now
        for _ in 0..<200 {
            clock.advance(by: step)
            try act()
            try net.loop.turn(.poll)
            if closed.isFulfilled { break }
        }
        return begin.duration(to: clock.now)
    }

    @Test func aDripOfInputIsNoProgress() throws {
        let clock = VirtualClock()
        try withNetwork(clock: clock) { net in
            let (connection, peer) = try net.pair()
            let closed = connection.close()
            let time = try time(of: closed, net, clock, every: .seconds(1)) {
                try peer.send("x")
                awaitArrival(of: POLLIN, at: net.ledger.accepted[0])
            }
            expectEqual(time, .seconds(5))
            expectEqual(try peer.readToEnd(), [])
        }
    }

    @Test func aPeerThatSendsSteadilyIsLeftAfterThirtySeconds() throws {
        let clock = VirtualClock()
        try withNetwork(clock: clock) { net in
            let (connection, peer) = try net.pair()
            let closed = connection.close()
            let time = try time(of: closed, net, clock, every: .seconds(1)) {
                try peer.send(pattern(2048))
                awaitArrival(of: POLLIN, at: net.ledger.accepted[0])
            }
            expectEqual(time, .seconds(30))
            expectEqual(try peer.readToEnd(), [])
        }
    }

    @Test func aLingerTimeIsTheWholeTimeWhateverThePeerSends() throws {
        let clock = VirtualClock()
        try withNetwork(clock: clock) { net in
            let (connection, peer) = try net.pair()
            let closed = connection.close(linger: .milliseconds(500))
            let time = try time(of: closed, net, clock, every: .milliseconds(100)) {
                try peer.send(pattern(8192))
                awaitArrival(of: POLLIN, at: net.ledger.accepted[0])
            }
            expectEqual(time, .milliseconds(500))
            expectEqual(try peer.readToEnd(), [])
        }
    }

    @Test func aPeerThatSipsIsReset() throws {
        let clock = VirtualClock()
        try withNetwork(clock: clock) { net in
            let (connection, peer) = try net.pair()
            let write = connection.write(pattern(64 << 20))
            net.kernel.waitingBytes = { _, _ in 0 }
            let closed = connection.close()
            try net.loop.turn(.poll)
            // From here on the kernel takes a little whenever there is room.
            net.kernel.send = { _, _, _ in 100 }
            _ = try peer.receive(exactly: 2 << 20)
            awaitArrival(of: POLLOUT, at: net.ledger.accepted[0])
            let time = try time(of: closed, net, clock, every: .seconds(1)) {}
            expectEqual(time, .seconds(5))
            expectEqual(code(write), ECANCELED)
        }
    }

    @Test func aSlowReaderIsResetAfterThirtySeconds() throws {
        let clock = VirtualClock()
        try withNetwork(clock: clock, turns: 4000) { net in
            let (connection, peer) = try net.pair()
            let write = connection.write(pattern(64 << 20))
            let closed = connection.close()
            let time = try time(of: closed, net, clock, every: .seconds(2)) {
                _ = try peer.receive(exactly: 2 << 20)
                awaitArrival(of: POLLOUT, at: net.ledger.accepted[0])
            }
            expectEqual(time, .seconds(30))
            expectEqual(code(write), ECANCELED)
        }
    }

    /// Bytes that are no longer queued here are still on their way to the peer.
    @Test func aPeerThatStillTakesWhatTheKernelHasIsNotReset() throws {
        let clock = VirtualClock()
        try withNetwork(clock: clock) { net in
            let (connection, peer) = try net.pair()
            var waiting = 100_000
            net.kernel.waitingBytes = { _, _ in waiting }
            let closed = connection.close()
            let time = try time(of: closed, net, clock, every: .seconds(1)) { waiting -= min(10_000, waiting) }
            // Ten seconds with progress; the check at 15 finds that there is no more.
            expectEqual(time, .seconds(15))
            withExtendedLifetime(peer) {}
        }
    }

    /// A reset would destroy bytes that the kernel still has to deliver.
    @Test(arguments: [nil, Duration.seconds(2)]) func whatTheKernelHasTakenReachesAPeerThatPauses(linger: Duration?)
        throws
    {
        try withNetwork(clock: VirtualClock()) { net in
            let (connection, peer) = try net.pair(receiveBuffer: 4096)
            net.kernel.waitingBytes = { _, _ in 0 }
            let answer = pattern(60_000)
            try hang(connection.write(answer), timeout: patience)
            let end = connection.closed
            hang(linger.map { connection.close(linger: $0) } ?? connection.close())
            expectEqual(try peer.readToEnd(), answer)
            expectEqual(end.settledValue, .closed)
        }
    }

    /// With unread input the kernel resets by itself.
    @Test func inputThatArrivesAtTheLimitDestroysNothing() throws {
        try withNetwork { net in
            let (connection, peer) = try net.pair(receiveBuffer: 4096)
            let answer = pattern(60_000)
            try hang(connection.write(answer), timeout: patience)
            connection.close(linger: .seconds(1000))
            try peer.send(pattern(100_000))
            awaitArrival(of: POLLIN, at: net.ledger.accepted[0])
            connection.close(linger: .zero)
            expectEqual(try peer.readToEnd(), answer)
        }
    }

    /// Timers run before events.
    @Test func anEndThatCameWhileTheLoopWasHeldIsNoReset() throws {
        let clock = VirtualClock()
        try withNetwork(clock: clock) { net in
            let (connection, peer) = try net.pair()
            let closed = connection.close()
            try net.loop.turn(.poll)
            peer.end()
            awaitArrival(of: POLLHUP, at: net.ledger.accepted[0])
            let options = net.calls(.setSocketOption)
            clock.advance(by: .seconds(60))
            try net.loop.turn(.poll)
            expect(closed.isFulfilled)
            expectEqual(net.calls(.setSocketOption), options, "the peer was reset")
            expectEqual(try peer.readToEnd(), [])
        }
    }

    @Test func aPipeMayTakeItsTime() throws {
        let clock = VirtualClock()
        try withNetwork(clock: clock, turns: 4000) { net in
            let (reader, writer) = try Connection.pipe()
            let bytes = pattern(1 << 20)
            writer.write(bytes).cauterize()
            let closed = writer.close()
            var received: [UInt8] = []
            let time = try time(of: closed, net, clock, every: .seconds(4)) {
                received += try hang(reader.receive(upTo: 16_384))
            }
            expect(time > .seconds(60))
            received += try hang(readToEnd(reader))
            expectEqual(received, bytes)
            reader.close()
        }
    }
}
