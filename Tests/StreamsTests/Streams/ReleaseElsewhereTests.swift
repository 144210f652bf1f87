@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// The last reference to an object of a loop may be released on another thread, as by an actor or a task. The object is
/// still torn down on the loop's own.
struct ReleaseElsewhereTests {
    /// Carries the last reference to another thread.
    // @unchecked: its content is used by one thread after the other.
    private final class Parcel<Content>: @unchecked Sendable {
        var content: Content?
        init(_ make: () throws -> Content) rethrows { content = try make() }
    }

    /// The caller must keep no reference to the new object.
    private func releaseElsewhere<Content>(_ make: () throws -> Content) rethrows {
        let parcel = try Parcel(make)
        TestThread.run { parcel.content = nil }
    }

    /// Releases one end of a pair.
    private func pairWithOneReleased() throws -> (other: Connection, closed: Guarantee<ConnectionEnd>) {
        var (other, closed): (Connection?, Guarantee<ConnectionEnd>?)
        try releaseElsewhere {
            let (one, two) = try Connection.pair()
            one.idleTimeout = .seconds(5)
            (other, closed) = (two, one.closed)
            return one
        }
        return (other!, closed!)
    }

    /// Perhaps its idle time-out has passed when the loop comes to it.
    @Test(.network(.virtual), arguments: [0, 20]) func aConnection(secondsLater: Int64) throws {
        let (other, closed) = try pairWithOneReleased()
        net.clock.advance(by: .seconds(secondsLater))
        expect(closed.isPending && net.calls(.close) == 0, "it is closed on the loop's thread")
        expect(other.receive(), gives: [])
        expect(closed.settledValue == .closed && net.calls(.close) == 1)
        other.close()
        try net.loop.run()
        expectEqual(net.loop.now.nanoseconds, secondsLater * 1_000_000_000, "its timer has gone with it")
    }

    /// The timer of a limit outlives the read that set it.
    @Test(.network(.virtual)) func aConnectionWithTheTimerOfALimit() throws {
        var other: Connection?
        try releaseElsewhere {
            let (one, two) = try Connection.pair()
            one.frameTimeouts = FrameTimeouts(idle: .seconds(5), frame: .seconds(5))
            let line = one.readLine()
            try hang(two.write("line\n"))
            expectEqual(try hang(line), "line")
            other = two
            return one
        }
        hang(after(.seconds(10)))
        expect(try #require(other).receive(), gives: [])
    }

    @Test func aConnectionOfALoopThatHasEnded() throws {
        var ends: [CInt] = [-1, -1]
        expectEqual(socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends), 0)
        try releaseElsewhere {
            try EventLoop.withLoop { _ throws in
                let connection = try Connection(adopting: ends[0])
                connection.idleTimeout = .seconds(5)
                return connection
            }
        }
        awaitArrival(of: POLLHUP, at: ends[1])
        close(ends[1])
    }

    /// The network checks that it is closed.
    @Test(.network) func aConnectionOfALoopThatEndsBeforeItComesToIt() throws {
        let (other, closed) = try pairWithOneReleased()
        expect(closed.isPending)
        withExtendedLifetime(other) {}
    }

    enum Bound: CaseIterable { case listener, datagramSocket }

    @Test(.network, arguments: Bound.allCases) func aBoundSocket(_ bound: Bound) throws {
        try releaseElsewhere { () throws -> AnyObject in
            bound == .listener ? try net.listen() : try DatagramSocket.bind("127.0.0.1:0")
        }
        expectEqual(net.calls(.close), 0, "it is closed on the loop's thread")
        while net.loop.isReady { try net.loop.turn(.poll) }
        expectEqual(net.calls(.close), 1)
    }

    @Test(.inRealTime) func aHold() throws {
        let loop = EventLoop.current
        releaseElsewhere { loop.hold() }
        // It is still held, perhaps by another one at the same address.
        let other = loop.hold()
        try loop.turn(.poll)
        expect(loop.isAlive)
        other.cancel()
        expect(!loop.isAlive)
        try loop.run()
    }

    @Test(.inRealTime) func aSequenceOfSignals() throws {
        let loop = EventLoop.current
        // Watched by no other test: actions are process-wide.
        let unusual: CInt = 61
        try releaseElsewhere { try signals(unusual) }
        var action = sigaction()
        sigaction(unusual, nil, &action)
        expect(action.sa_flags & SA_RESTART != 0, "it is watched until the loop comes to it")
        while loop.isReady { try loop.turn(.poll) }
        sigaction(unusual, nil, &action)
        expectEqual(action.sa_flags & SA_RESTART, 0)
        expect(!loop.isAlive)
    }
}
