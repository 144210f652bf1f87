@testable import PromisesTestSupport

struct BroadcastTests {
    /// Connections of the loop and their other ends; those in `silent` do not read, and their queues are full.
    private func crowd(_ net: Network, silent: Set<Int>) throws -> [(connection: Connection, peer: Peer)] {
        try (0..<4).map { number in
            let (connection, peer) = try net.pair(receiveBuffer: silent.contains(number) ? 4096 : nil)
            connection.writeQueueLimit = 1 << 16
            if silent.contains(number) {
                while connection.queuedBytes < 1 << 16 {
                    connection.write([UInt8](repeating: 0, count: 1 << 20)).catch(policy: .allErrors) { _ in }
                }
            }
            return (connection, peer)
        }
    }

    @Test func reachesAllAndMakesNoPromise() throws {
        try withNetwork { net in
            let all = try crowd(net, silent: [])
            for _ in 0..<3 { expectEqual(broadcast("hello\n".utf8, to: all.map(\.connection), overflow: .abort), 4) }
            net.settle()
            for (connection, peer) in all {
                expectEqual(try peer.receive(exactly: 18), Array("hello\nhello\nhello\n".utf8))
                connection.abort()
            }
        }
    }

    @Test func keepsTheOrderOfEarlierAndLaterWrites() throws {
        try withNetwork { net in
            let (connection, peer) = try net.pair(receiveBuffer: 4096)
            let first = connection.write([UInt8](repeating: 1, count: 1 << 20))
            connection.writeQueueLimit = 8 << 20
            expectEqual(broadcast([UInt8](repeating: 2, count: 1 << 20), to: [connection], overflow: .drop), 1)
            expectEqual(broadcast([2], to: [connection], overflow: .drop), 1)
            let last = connection.write([3])
            let got = elsewhere { try peer.receive(exactly: 2 << 20 + 2) }
            let bytes = try hang(got, timeout: patience)
            expect(bytes.prefix(1 << 20).allSatisfy { $0 == 1 } && bytes.last == 3)
            expect(bytes.dropFirst(1 << 20).dropLast().allSatisfy { $0 == 2 })
            try hang(when(fulfilled: first, last))
            expectEqual(connection.queuedBytes, 0)
            connection.abort()
        }
    }

    @Test func dropsWhatAFullQueueDoesNotTake() throws {
        try withNetwork { net in
            let all = try crowd(net, silent: [1])
            let queued = all[1].connection.queuedBytes
            expectEqual(broadcast([7], to: all.map(\.connection), overflow: .drop), 3)
            expect(all[1].connection.queuedBytes == queued && !all[1].connection.isClosed)
            for (connection, _) in all { connection.abort() }
        }
    }

    @Test func endsThoseThatDoNotReadAndSaysWhy() throws {
        try withNetwork { net in
            let all = try crowd(net, silent: [0, 3])
            let reads = all.map { $0.connection.readLine() }
            let ends = all.map { $0.connection.closed }
            expectEqual(broadcast([7], to: all.map(\.connection), overflow: .abort), 2)
            for number in [0, 3] {
                expectEqual(code(reads[number]), ENOBUFS)
                guard case .failed(let error) = hang(ends[number]) else { return expect(Bool(false)) }
                expect(error.code == ENOBUFS && error.description.contains("the limit is 65536"))
                expectEqual(all[number].peer.failureOfReading(), ECONNRESET)
            }
            // Ended ones are skipped.
            expectEqual(broadcast([8], to: all.map(\.connection), overflow: .abort), 2)
            expectEqual(try all[1].peer.receive(exactly: 1), [7])
            for (connection, _) in all { connection.abort() }
        }
    }

    @Test func passesOverAPeerThatHasGone() throws {
        try withNetwork { net in
            let all = try crowd(net, silent: [])
            all[2].peer.reset()
            awaitArrival(of: POLLIN, at: net.ledger.accepted[2])
            expectEqual(broadcast([7], to: all.map(\.connection), overflow: .abort), 3)
            expectEqual(try rejection(of: all[2].connection.readLine()), ECONNRESET)
            for (connection, _) in all { connection.abort() }
        }
    }
}
