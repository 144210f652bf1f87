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

    @Test(.network) func reachesAllAndMakesNoPromise() throws {
        let all = try crowd(net, silent: [])
        for _ in 0..<3 { expectEqual(broadcast("hello\n".utf8, to: all.map(\.connection), overflow: .abort), 4) }
        net.settle()
        for (connection, peer) in all {
            expectEqual(try peer.receive(exactly: 18), Array("hello\nhello\nhello\n".utf8))
            connection.abort()
        }
    }

    @Test(.network) func dropsWhatAFullQueueDoesNotTake() throws {
        let all = try crowd(net, silent: [1])
        let queued = all[1].connection.queuedBytes
        expectEqual(broadcast([7], to: all.map(\.connection), overflow: .drop), 3)
        expect(all[1].connection.queuedBytes == queued && !all[1].connection.isClosed)
    }

    @Test(.network) func endsThoseThatDoNotReadAndSaysWhy() throws {
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
    }

    @Test(.network) func passesOverAPeerThatHasGone() throws {
        let all = try crowd(net, silent: [])
        all[2].peer.reset()
        awaitArrival(of: POLLIN, at: net.ledger.accepted[2])
        expectEqual(broadcast([7], to: all.map(\.connection), overflow: .abort), 3)
        expectEqual(try rejection(of: all[2].connection.readLine()), ECONNRESET)
    }
}
