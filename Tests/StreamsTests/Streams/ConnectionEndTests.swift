@testable import PromisesTestSupport

struct ConnectionEndTests {
    @Test(.pair) func anOrderlyCloseEndsWhenTheDescriptorIsReleased() throws {
        let closed = connection.closed
        connection.write("answer").cauterize()
        connection.close()
        expect(connection.isClosed && closed.isPending)
        peer.end()
        expectEqual(try hang(closed, timeout: patience), .closed)
        expectEqual(connection.localAddress, nil)
        expectEqual(connection.closed.settledValue, .closed)

        let (other, _) = try net.pair()
        other.close(linger: .zero)
        expectEqual(other.closed.settledValue, .closed)
    }

    @Test(.network) func abortAndALimitOfCloseAbort() throws {
        let (connection, _) = try net.pair()
        let (one, two) = (connection.closed, connection.closed)
        connection.abort()
        expect(one.settledValue == .aborted && two.settledValue == .aborted)

        let (slow, _) = try net.pair()
        _ = net.limitSends(to: 100)
        slow.write(pattern(200)).catch { _ in }
        slow.close(linger: .zero)
        expectEqual(slow.closed.settledValue, .aborted)
    }

    @Test(.network) func theFirstErrorIsTheEndHoweverItIsClosed() throws {
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

    @Test(.pair) func anErrorWhileClosingIsTheEnd() throws {
        connection.close()
        peer.reset()
        expectEqual(try hang(connection.closed, timeout: patience), .failed(SystemError(.receive, ECONNRESET)))
    }

    @Test(.network) func detachingIsAnEnd() throws {
        let (connection, _) = try net.pair()
        let closed = connection.closed
        _ = try Connection(adopting: connection.detach())
        expect(closed.settledValue == .detached && connection.closed.settledValue == .detached)
    }

    @Test(.network) func endingAPipesWriterClosesIt() throws {
        let (reader, writer) = try Connection.pipe()
        let closed = writer.closed
        try hang(writer.shutdownWrite(), timeout: patience)
        expectEqual(closed.settledValue, .closed)
        expectEqual([code(writer.write("x")), code(reader.shutdownWrite())], [EPIPE, EBADF])
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

    @Test(.network) func itDoesNotRetainTheConnection() throws {
        let closed = try net.pair().0.closed
        expectEqual(closed.settledValue, .closed)
        expectEqual("\(net.loop.keepAliveReport)", "nothing")
    }
}
