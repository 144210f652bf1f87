@testable import PromisesTestSupport

/// Results that the kernel may return but seldom does.
struct PartialWriteTests {
    @Test(.pair(turns: 2000), arguments: [1, 7, 1000, 16_383, 16_384, 16_385]) func shortCountsLoseNothing(
        count limit: Int
    ) throws {
        let real = net.kernel.send
        net.kernel.send = { real($0, $1, min($2, limit)) }
        var order: [Int] = []
        var sent: [UInt8] = []
        var writes: [Promise<Void>] = []
        for (index, size) in [limit * 3, 1, 0, limit, limit + 1, 2 * limit - 1].enumerated() {
            let bytes = pattern(size, from: sent.count)
            sent += bytes
            let write = connection.write(bytes)
            write.done { order.append(index) }.catch { _ in }
            writes.append(write)
        }
        let count = sent.count
        let received = elsewhere { try peer.receive(exactly: count) }
        try hang(when(fulfilled: writes), timeout: patience)
        expectEqual(try hang(received, timeout: patience), sent)
        try net.loop.turn(.poll)
        expectEqual(order, Array(0..<6))
        expectEqual(connection.bytesSent, count)
    }

    @Test(.pair) func aWriteIsNotFulfilledBeforeItsLastByte() throws {
        let budget = net.limitSends(to: 9)
        let first = connection.write("12345")
        let second = connection.write("67890")
        expect(first.isFulfilled)
        for _ in 0..<3 { try net.loop.turn(.poll) }
        expect(second.isPending && connection.queuedBytes == 1)
        budget.remaining = 1
        try hang(second, timeout: patience)
        expectEqual(try peer.receive(exactly: 10), Array("1234567890".utf8))
    }

    @Test(.pair) func interruptedCallsAreRepeated() throws {
        let real = net.kernel
        var interruptions = 0
        func interrupts() -> Bool {
            interruptions += 1
            return interruptions % 2 == 1
        }
        net.kernel.receive = { interrupts() ? -Int(EINTR) : real.receive($0, $1, $2) }
        net.kernel.send = { interrupts() ? -Int(EINTR) : real.send($0, $1, $2) }
        net.kernel.epollWait = { interrupts() ? -Int(EINTR) : real.epollWait($0, $1, $2, $3) }
        net.kernel.epollControl = { interrupts() ? -Int(EINTR) : real.epollControl($0, $1, $2, $3) }
        for number in 0..<10 {
            try peer.send([UInt8(number)])
            expectEqual(try hang(connection.read(), timeout: patience), .bytes([UInt8(number)]))
            try hang(connection.write([UInt8(number)]), timeout: patience)
        }
        expectEqual(try peer.receive(exactly: 10), Array(0..<10))
        net.kernel = real
    }

    @Test(.pair) func withoutARegistrationReadsAndWritesFail() throws {
        let real = net.kernel
        net.kernel.epollControl = { _, _, _, _ in -Int(EPERM) }
        let read = connection.read()
        expectEqual(read.settledValue, .failed(SystemError(.epollControl, EPERM)))
        expectEqual(code(connection.write("x")), EPERM)
        net.kernel = real
        expect(connection.close().isFulfilled)
    }
}
