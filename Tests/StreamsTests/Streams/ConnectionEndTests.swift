@testable import PromisesTestSupport

/// `closed`: the way a connection has ended.
struct ConnectionEndTests {
    @Test func anOrderlyCloseEndsWhenTheDescriptorIsReleased() throws {
        try withPair { net, connection, peer in
            let closed = connection.closed
            connection.write("answer").cauterize()
            connection.close()
            expect(connection.isClosed && closed.isPending)
            peer.end()
            expectEqual(try hang(closed, timeout: patience), .closed)
            expectEqual(connection.localAddress, nil)
            expectEqual(connection.closed.settledValue, .closed)

            // `closed` was not used before.
            let (other, _) = try net.pair()
            other.close(linger: .zero)
            expectEqual(other.closed.settledValue, .closed)
        }
    }

    @Test func abortAndALimitOfCloseAbort() throws {
        try withNetwork { net in
            let (connection, _) = try net.pair()
            let (one, two) = (connection.closed, connection.closed)
            connection.abort()
            expect(one.settledValue == .aborted && two.settledValue == .aborted)

            let (slow, stuck) = try net.pair()
            _ = net.limitSends(to: 100)
            slow.write(pattern(200)).catch { _ in }
            slow.close(linger: .zero)
            expectEqual(slow.closed.settledValue, .aborted)
            withExtendedLifetime(stuck) {}
        }
    }

    @Test func theFirstErrorIsTheEndHoweverItIsClosed() throws {
        try withNetwork { net in
            for abort in [true, false] {
                let (connection, peer) = try net.pair()
                let closed = connection.closed
                peer.reset()
                expectEqual(try hang(connection.read(), timeout: patience), failed(ECONNRESET))
                expect(closed.isPending)
                if abort { connection.abort() } else { connection.close() }
                expectEqual(closed.settledValue, .failed(SystemError(.receive, ECONNRESET)))
            }
        }
    }

    @Test func anErrorWhileClosingIsTheEnd() throws {
        try withPair { _, connection, peer in
            connection.close()
            peer.reset()
            expectEqual(try hang(connection.closed, timeout: patience), .failed(SystemError(.receive, ECONNRESET)))
        }
    }

    @Test func gatheredBytesThatCannotLeaveAreAnError() throws {
        try withPair { net, connection, peer in
            try peer.send("one\ntwo\n")
            let real = net.kernel
            net.kernel.send = { _, _, _ in -Int(EPIPE) }
            defer { net.kernel = real }
            let served = connection.forEachLine { _ in connection.write("answer\n") }
            let closed = served.recover { _ in .value }.then { connection.close() }.then { connection.closed }
            peer.end()
            expectEqual(try hang(closed, timeout: patience), .failed(SystemError(.send, EPIPE)))
        }
    }

    @Test func detachingIsAnEnd() throws {
        try withNetwork { net in
            let (connection, _) = try net.pair()
            let closed = connection.closed
            let heir = try Connection(adopting: connection.detach())
            expect(closed.settledValue == .detached && connection.closed.settledValue == .detached)
            heir.abort()
        }
    }

    @Test func endingAPipesWriterClosesIt() throws {
        try withNetwork { net in
            let (reader, writer) = try Connection.pipe()
            let closed = writer.closed
            try hang(writer.shutdownWrite(), timeout: patience)
            expectEqual(closed.settledValue, .closed)
            reader.abort()
        }
    }

    @Test func theEndOfTheLoopIsAnEnd() throws {
        var closed: Guarantee<ConnectionEnd>?
        try withNetwork { net in
            let (connection, _) = try net.pair()
            closed = connection.closed
            _ = connection.read()
        }
        expectEqual(closed?.settledValue, .loopEnded)
    }

    @Test func aReleaseAfterTheEndOfTheLoopIsTheLoopsEnd() throws {
        var kept: (connection: Connection, closed: Guarantee<ConnectionEnd>)?
        try EventLoop.withLoop { _ throws in
            let (one, other) = try Connection.pair()
            other.abort()
            kept = (one, one.closed)
        }
        let closed = kept!.closed
        kept = nil
        expectEqual(closed.settledValue, .loopEnded)
    }

    @Test func itDoesNotRetainTheConnection() throws {
        try withNetwork { net in
            let closed = try net.pair().0.closed
            expectEqual(closed.settledValue, .closed)
            expectEqual("\(net.loop.keepAliveReport)", "nothing")
        }
    }

    /// Carries the last reference to another thread.
    // @unchecked: its content is used by one thread after the other.
    private final class Parcel: @unchecked Sendable {
        var content: Connection?
    }

    @Test func aReleaseOnAnotherThreadIsAnEnd() throws {
        try withNetwork { net in
            let parcel = Parcel()
            parcel.content = try net.pair().0
            let closed = parcel.content!.closed
            TestThread.run { parcel.content = nil }
            expect(closed.isPending)
            expectEqual(try hang(closed, timeout: patience), .closed)
        }
    }
}
