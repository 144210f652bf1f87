@testable import PromisesTestSupport

/// The memory that counts against the limit of the write queue.
struct WriteQueueMemoryTests {
    /// A connection whose kernel takes nothing.
    private func withBlockedConnection(_ body: (Connection, Network) throws -> Void) throws {
        try withConnections { net, connection, _ in
            net.kernel.send = { _, _, _ in -Int(EAGAIN) }
            try body(connection, net)
        }
    }

    /// The number of writes that are taken before the first refused one, at most `limit`.
    private func accepted(upTo limit: Int, _ write: () -> Promise<Void>) -> Int {
        var count = 0
        while count < limit {
            let promise = write()
            promise.catch { _ in }
            if code(promise) == ENOBUFS { return count }
            count += 1
        }
        return count
    }

    @Test(arguments: ["x", ""]) func aSmallWriteCountsWithItsBookkeeping(text: String) throws {
        try withBlockedConnection { connection, _ in
            connection.write("x").ignoringErrors()
            let count = accepted(upTo: 200_000) { connection.write(text) }
            // 4 MiB by some 200 bytes each.
            expect((10_000..<50_000).contains(count))
            expectEqual(connection.queuedBytes, 1 + count * text.utf8.count)
        }
    }

    @Test func smallWritesMakeItUnwritableBeforeTheyAreRefused() throws {
        try withConnections { net, connection, peer in
            let real = net.kernel.send
            net.kernel.send = { _, _, _ in -Int(EAGAIN) }
            var count = 0
            var refused = 0
            while connection.isWritable && count < 200_000 {
                connection.write("x").catch { if ($0 as? SystemError)?.code == ENOBUFS { refused += 1 } }
                count += 1
            }
            expect(!connection.isWritable)
            let relief = connection.writable()
            net.kernel.send = real
            let all = peer.read(exactly: count)
            try hang(relief.asPromise(), timeout: patience)
            expect(connection.isWritable)
            try hang(all, timeout: patience)
            expectEqual(refused, 0)
        }
    }

    @Test(arguments: [false, true]) func writesThatAreTakenBackLeaveNothingBehind(isEmpty: Bool) throws {
        try withBlockedConnection { connection, _ in
            let first = connection.write("first")
            let bytes = isEmpty ? [] : [UInt8](repeating: 7, count: 100)
            var refused = 0
            for _ in 0..<100_000 {
                let write = connection.write(bytes)
                if code(write) == ENOBUFS { refused += 1 }
                write.cancel()
            }
            expectEqual(refused, 0)
            expectEqual(connection.queuedBytes, 5)
            expect(first.isPending)
            first.catch { _ in }
        }
    }

    @Test(arguments: UInt64(0)..<10) func whatRemainsAfterOthersWereTakenBackIsSentInOrder(seed: UInt64) throws {
        try withConnections { net, connection, peer in
            let real = net.kernel.send
            net.kernel.send = { _, _, _ in -Int(EAGAIN) }
            var dice = SplitMix64(seed)
            var kept: [UInt8] = []
            var waiting: [(promise: Promise<Void>, bytes: [UInt8])] = []
            for number in 0..<2_000 {
                let count = [0, 1, 10, 1_000, 20_000].randomElement(using: &dice)!
                let bytes = pattern(count, from: number * 77)
                waiting.append((connection.write(bytes), bytes))
                if waiting.count > 8 {
                    let index = Int.random(in: 0..<waiting.count, using: &dice)
                    waiting.remove(at: index).promise.cancel()
                }
            }
            for write in waiting { kept += write.bytes }
            expectEqual(connection.queuedBytes, kept.count)
            net.kernel.send = real
            let received = peer.read(exactly: max(kept.count, 1))
            for write in waiting { try hang(write.promise, timeout: patience) }
            if !kept.isEmpty { expectEqual(try hang(received, timeout: patience), kept) }
        }
    }
}
