@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

struct ResetTests {
    @Test(.pair) func anIdleConnectionIsNotifiedAndTheErrorStays() throws {
        let read = connection.read()
        try net.loop.turn(.poll)
        peer.reset()
        expectEqual(try hang(read, timeout: patience), failed(ECONNRESET))
        // The kernel would say "end" from now on.
        for _ in 0..<3 { expectEqual(connection.read().settledValue, failed(ECONNRESET)) }
        expectEqual(try rejection(of: connection.receive()), ECONNRESET)
        expectEqual(code(connection.write("x")), ECONNRESET)
        expectEqual(code(connection.shutdownWrite()), ECONNRESET)
        expect(net.turns { net.settle() } <= 4)
        expect(connection.close().isFulfilled)
    }

    @Test(.pair) func aWriteThatMeetsTheResetTellsTheReadsToo() throws {
        peer.reset()
        awaitArrival(of: POLLHUP, at: net.ledger.accepted[0])
        expectEqual(code(connection.write("x")), ECONNRESET)
        let read = try hang(connection.read(), timeout: patience)
        expectEqual(read, .failed(SystemError(.send, ECONNRESET)))
        expectEqual(connection.read().settledValue, read)
    }

    @Test(.pair) func inTheMiddleOfWritesAllFailWithTheSameError() throws {
        connection.writeQueueLimit = .max
        let writes = [
            connection.write(pattern(8 << 20)), connection.write("next"), connection.write(""),
            connection.write(pattern(100_000)), connection.shutdownWrite(),
        ]
        let read = connection.read()
        var settled = 0
        for write in writes { write.tap { _ in settled += 1 }.catch { _ in } }
        expectEqual(try peer.receive(exactly: 100_000), pattern(100_000))
        peer.reset()
        let first = try #require(try rejection(of: writes[0]))
        expect(first == ECONNRESET || first == EPIPE)
        for write in writes { expectEqual(try rejection(of: write), first) }
        guard case .failed(let error) = try hang(read, timeout: patience) else {
            Issue.record("the read does not fail")
            return
        }
        expectEqual(error.code, first)
        expectEqual(code(connection.write("late")), first)
        expectEqual(connection.queuedBytes, 0)
        expect(net.turns { net.settle() } <= 4)
        expectEqual(settled, writes.count)
        expect(connection.close().isFulfilled)
    }

    @Test(.pair) func anErrorThatOnlyTheReadMeetsEndsTheWritesWithoutASpin() throws {
        let write = connection.write(pattern(8 << 20))
        expect(write.isPending)
        // As when the connection fails between the two calls: sending would block, receiving reports the end.
        let real = net.kernel
        net.kernel.send = { _, _, _ in -Int(EAGAIN) }
        net.kernel.receive = { _, _, _ in -Int(ETIMEDOUT) }
        try peer.send("x")
        expectEqual(try hang(connection.read(), timeout: patience), failed(ETIMEDOUT))
        net.kernel = real
        expectEqual(code(write), ETIMEDOUT)
        // The socket is writable; no write waits for it any more.
        _ = try peer.receive(exactly: 1 << 20)
        expect(net.turns { net.settle() } <= 4)
    }
}
