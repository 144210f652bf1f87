@testable import PromisesTestSupport

/// Handlers of `pipe` run inside the call that settles, and may end the connection there.
struct EndedMeanwhileTests {
    @Test(.pair) func aWriteThatFailsClosesAndIsNotClosedTwice() throws {
        fill(connection)
        let waiting = connection.write([UInt8](repeating: 1, count: 100_000))
        waiting.pipe { [connection = Unchecked(connection)] _ in connection.value.close() }
        peer.reset()
        expect(try rejection(of: waiting) == ECONNRESET || code(waiting) == EPIPE)
        expect(connection.isClosed)
    }

    @Test(.pair) func anAbortedWriteClosesAndIsNotClosedTwice() throws {
        fill(connection)
        let waiting = connection.write([1])
        waiting.pipe { [connection = Unchecked(connection)] _ in connection.value.close() }
        connection.abort()
        expectEqual(code(waiting), ECANCELED)
    }

    @Test(.pair) func aReadThatIsCancelledAborts() throws {
        let read = connection.read()
        read.pipe { [connection = Unchecked(connection)] _ in connection.value.abort() }
        connection.close()
        expectEqual(read.settledValue, failed(ECANCELED))
    }

    @Test(.pair) func ofTwoWritesThatLeaveTogetherTheFirstAborts() throws {
        fill(connection)
        let first = connection.write([1])
        let second = connection.write([2])
        first.pipe { [connection = Unchecked(connection)] _ in connection.value.abort() }
        while first.isPending {
            _ = try peer.receive()
            try net.loop.turn(.poll)
        }
        // Both were sent; the second is not withdrawn.
        expect(first.isFulfilled)
        expect(second.isFulfilled)
    }

    private func fill(_ connection: Connection) {
        while connection.queuedBytes == 0 { _ = connection.write([UInt8](repeating: 0, count: 1 << 20)) }
    }
}

/// The handlers run on the thread of the test.
private struct Unchecked<Value>: @unchecked Sendable {
    let value: Value

    init(_ value: Value) { self.value = value }
}
