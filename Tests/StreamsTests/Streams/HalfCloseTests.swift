@testable import PromisesTestSupport

/// `shutdownWrite`, and the end of the peer alone: the other direction goes on.
struct HalfCloseTests {
    @Test(.pair) func whatIsQueuedComesBeforeTheEndAndReadingGoesOn() throws {
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

    @Test(.pair) func closeAfterAnEndThatWaitsFulfillsBoth() throws {
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
