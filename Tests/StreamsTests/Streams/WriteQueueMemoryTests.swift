@testable import Promises
@testable import PromisesTestSupport

/// The memory that counts against the limit of the write queue.
struct WriteQueueMemoryTests {
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

    @Test(.network) func smallWritesMakeItUnwritableBeforeTheyAreRefused() throws {
        let (connection, peer) = try Connection.pair()
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

    @Test(arguments: [false, true]) func writesThatAreTakenBackLeaveNothingBehind(isEmpty: Bool) throws {
        try withBlockedConnection { connection, _ in
            let first = connection.write("first")
            let bytes = isEmpty ? [] : [UInt8](repeating: 7, count: 100)
            var refused = 0
            connection.writeQueueLimit = 100_000
            for _ in 0..<2_000 {
                let write = connection.write(bytes)
                if code(write) == ENOBUFS { refused += 1 }
                write.cancel()
            }
            expectEqual(refused, 0)
            expect(connection.queuedBytes == 5 && connection.heldMemory < 50_000)
            expect(first.isPending)
            first.catch { _ in }
        }
    }
}
