@testable import PromisesTestSupport

/// `shutdownWrite`, and the end of the peer alone: the other direction goes on.
struct HalfCloseTests {
    @Test func whatIsQueuedComesBeforeTheEndAndReadingGoesOn() throws {
        try withPair { net, connection, peer in
            let large = pattern(8 << 20)
            let write = connection.write(large)
            let ended = connection.shutdownWrite()
            let again = connection.shutdownWrite()
            expect(connection.queuedBytes > 0 && ended.isPending && again.isPending)
            expectEqual(code(connection.write("late")), EPIPE)
            expectEqual(net.calls(.shutdown), 0)

            let received = elsewhere { try peer.readToEnd() }
            try hang(when(fulfilled: [write, ended, again]), timeout: patience)
            expectEqual(try hang(received, timeout: patience), large)
            try hang(connection.shutdownWrite(), timeout: patience)
            expectEqual(net.calls(.shutdown), 1)
            expectEqual(code(connection.write("late")), EPIPE)

            try peer.send("still here")
            peer.end()
            expectEqual(try hang(connection.read(), timeout: patience), .bytes(Array("still here".utf8)))
            expectEqual(try hang(connection.read(), timeout: patience), .end)
        }
    }

    @Test func withNothingQueuedTheEndGoesOutAtOnce() throws {
        try withPair { _, connection, peer in
            expect(connection.shutdownWrite().isFulfilled)
            expectEqual(try peer.receive(), [])
            expect(!connection.isClosed)
        }
    }

    @Test func anEndThatCannotBeSentFailsAsTheWritesDo() throws {
        try withPair { _, connection, peer in
            let write = connection.write(pattern(8 << 20))
            let ended = connection.shutdownWrite()
            expect(ended.isPending)
            peer.reset()
            let first = try rejection(of: write)
            expect(first == ECONNRESET || first == EPIPE)
            expectEqual(try rejection(of: ended), first)
            expectEqual(code(connection.shutdownWrite()), first)
        }
    }

    @Test func abortCancelsAnEndThatWaits() throws {
        try withPair { _, connection, peer in
            let write = connection.write(pattern(8 << 20))
            let ended = connection.shutdownWrite()
            connection.abort()
            expectEqual(code(write), ECANCELED)
            expectEqual(code(ended), ECANCELED)
            expectEqual(peer.failureOfReading(), ECONNRESET)
        }
    }

    @Test func closeAfterAnEndThatWaitsFulfillsBoth() throws {
        try withPair { net, connection, peer in
            let large = pattern(8 << 20)
            let write = connection.write(large)
            let ended = connection.shutdownWrite()
            let closed = connection.close()
            let received = elsewhere {
                let all = try peer.readToEnd()
                peer.close()
                return all
            }
            try hang(when(fulfilled: [write, ended]), timeout: patience)
            try hang(closed, timeout: patience)
            expectEqual(try hang(received, timeout: patience), large)
            expectEqual(net.calls(.shutdown), 1)
        }
    }
}
