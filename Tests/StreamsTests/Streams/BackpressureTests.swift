@testable import PromisesTestSupport

struct BackpressureTests {
    @Test(.pair(turns: 4000)) func whoeverAwaitsEachWriteQueuesNoMoreThanOne() throws {
        let chunk = pattern(65536)
        var peak = 0
        var left = 256
        func produce() -> Promise<Void> {
            guard left > 0 else { return .value }
            left -= 1
            let write = connection.write(chunk)
            peak = max(peak, connection.queuedBytes)
            return write.then { produce() }
        }
        let produced = produce()
        // The peer reads nothing until the kernel's own buffers are full.
        try net.loop.run(until: { connection.queuedBytes > 0 })
        expect(net.turns { net.settle() } <= 4, "a blocked write spins")
        expect(produced.isPending)
        let received = elsewhere { try peer.receive(exactly: 256 * 65536) }
        try hang(produced, timeout: patience)
        expectEqual(try hang(received, timeout: patience).count, 256 * 65536)
        expect(peak > 0 && peak <= chunk.count)
    }

    @Test(.pair) func whoeverDoesNotIsRefusedAtTheLimit() throws {
        connection.writeQueueLimit = 100_000
        let chunk = pattern(30_000)
        var taken = 0
        var accepted: [Promise<Void>] = []
        var refused: Promise<Void>?
        while refused == nil && taken < 1 << 28 {
            let write = connection.write(chunk)
            if write.isRejected {
                refused = write
            } else {
                accepted.append(write)
                taken += chunk.count
            }
            expect(connection.queuedBytes < 100_000 + chunk.count)
        }
        expectEqual(code(try #require(refused)), ENOBUFS)
        // Each write counts some more bytes.
        expect(connection.queuedBytes >= 99_000)
        let (received, all) = (taken, accepted)
        let reading = elsewhere { try peer.receive(exactly: received) }
        try hang(when(fulfilled: all), timeout: patience)
        let bytes = try hang(reading, timeout: patience)
        expectEqual(bytes.count, taken)
        for start in stride(from: 0, to: taken, by: chunk.count) {
            expectEqual(bytes[start..<start + chunk.count], chunk[...])
        }
        try hang(connection.write("more"), timeout: patience)
        expectEqual(try peer.receive(), Array("more".utf8))
    }

    @Test(.pair(turns: 3000)) func aConnectionWithAFastReaderLeavesTheOthersTheirTurn() throws {
        let (other, client) = try net.pair()
        // The reader never lets the kernel's buffer fill: without a bound, one flush would never end.
        let real = net.kernel.send
        let busy = net.ledger.accepted[0]
        net.kernel.send = { $0 == busy ? min($2, 1000) : real($0, $1, $2) }
        connection.writeQueueLimit = .max
        net.kernel.send = { fd, bytes, count in fd == busy ? -Int(EAGAIN) : real(fd, bytes, count) }
        let writes = (0..<100).map { _ in connection.write(pattern(20_000)) }
        net.kernel.send = { fd, bytes, count in
            fd == busy ? min(count, 1000) : real(fd, bytes, count)
        }
        try client.send("ping")
        awaitArrival(of: POLLIN, at: net.ledger.accepted[1])
        let echoed = other.receive().then { other.write($0) }
        try hang(echoed, timeout: patience)
        expect(writes[99].isPending)
        expectEqual(try client.receive(), Array("ping".utf8))
        try hang(when(fulfilled: writes), timeout: patience)
    }
}
