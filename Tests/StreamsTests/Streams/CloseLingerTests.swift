import Glibc
import Promises
import Reactor
import TestSupport
import Testing

@testable import PromisesTestSupport

/// A custom time limit for a peer that makes no progress.
@Suite struct CloseLingerTests {
    @Test func itIsWaitedForAsLongAsSaid() throws {
        let clock = VirtualClock()
        try withNetwork(clock: clock) { net in
            let (connection, peer) = try net.pair()
            let begin = clock.now
            hang(connection.close(linger: .seconds(60)))
            expectEqual(begin.duration(to: clock.now), .seconds(60))
            withExtendedLifetime(peer) {}
        }
    }

    @Test(arguments: [Duration.zero, .seconds(-1)]) func withoutPatienceWhatIsSentIsAllThereIs(patience none: Duration)
        throws
    {
        try withNetwork { net in
            let (connection, peer) = try net.pair()
            connection.write("one").cauterize()
            let second = connection.write("two")
            expect(second.isPending)
            expect(connection.close(linger: none).isFulfilled)
            expect(second.isFulfilled)
            expectEqual(try peer.readToEnd(), Array("onetwo".utf8))
        }
        try withNetwork { net in
            let (connection, peer) = try net.pair()
            let write = connection.write(pattern(8 << 20))
            expect(connection.close(linger: none).isFulfilled)
            expectEqual(code(write), ECANCELED)
            expectEqual(peer.failureOfReading(), ECONNRESET)
        }
    }

    @Test func aSecondCloseMayBeLessPatient() throws {
        try withNetwork { net in
            let (connection, peer) = try net.pair()
            let closed = connection.close(linger: .seconds(1000))
            net.settle()
            expect(closed.isPending)
            expect(connection.close().isPending)
            expect(connection.close(linger: .zero).isFulfilled && closed.isFulfilled)
            expect(!net.loop.isAlive)
            withExtendedLifetime(peer) {}
        }
    }
}
