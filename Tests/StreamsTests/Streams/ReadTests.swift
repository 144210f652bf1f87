@testable import PromisesTestSupport

struct ReadTests {
    @Test func dataAndEndTogetherComeInOrderAndTheEndStays() throws {
        try withPair { _, connection, peer in
            try peer.send("hello world")
            peer.end()
            var outcomes: [ReadOutcome] = []
            for _ in 0..<5 { outcomes.append(try hang(connection.read(upTo: 4), timeout: patience)) }
            expectEqual(
                outcomes,
                [
                    .bytes(Array("hell".utf8)), .bytes(Array("o wo".utf8)), .bytes(Array("rld".utf8)), .end, .end,
                ])
        }
    }

    @Test func noReadIsLargerThan64KiB() throws {
        try withPair { _, connection, peer in
            let sent = elsewhere {
                try peer.send(pattern(300_000))
                peer.end()
            }
            var all: [UInt8] = []
            while case .bytes(let bytes) = try hang(connection.read(upTo: .max), timeout: patience) {
                expect(bytes.count <= 65536)
                all += bytes
            }
            try hang(sent, timeout: patience)
            expectEqual(all, pattern(300_000))
        }
    }

    @Test func muchAndLittleByTurns() throws {
        try withConnections(turns: 4000) { net, a, b in
            var place = 0
            for count in [10, 5000, 70_000, 4095, 4096, 1, 20_000, 65_536, 8192, 100_000, 3] {
                let write = b.write(pattern(count, from: place))
                var rest = count
                while rest > 0 {
                    guard case .bytes(let bytes) = try hang(a.read(upTo: 60_000), timeout: patience) else {
                        Issue.record("it has ended")
                        return
                    }
                    expectEqual(bytes, pattern(bytes.count, from: place))
                    expect(bytes.count <= 60_000 && bytes.capacity < 2 * max(bytes.count, 65_536))
                    place += bytes.count
                    rest -= bytes.count
                }
                try hang(write, timeout: patience)
            }
            // Large reads: first nothing, then little, then the end.
            #expect(try hang(b.write(pattern(5000)), timeout: patience) == ())
            _ = try hang(a.read(), timeout: patience)
            let last = a.read()
            net.kernel.receive = { [real = net.kernel] fd, buffer, count in
                net.kernel = real
                return -Int(EAGAIN)
            }
            try hang(b.write("x"), timeout: patience)
            expectEqual(try hang(last, timeout: patience), .bytes([0x78]))
            b.close()
            expectEqual(try hang(a.read(), timeout: patience), .end)
        }
    }

    @Test func nothingIsReadBeforeItIsAskedFor() throws {
        try withPair { net, connection, peer in
            try net.deliver("early", from: peer)
            expect(net.turns { net.settle() } <= 4)
            expectEqual(net.calls(.receive), 0)
            expectEqual(try hang(connection.read(), timeout: patience), .bytes(Array("early".utf8)))
            expectEqual(net.calls(.receive), 1)
        }
    }

    @Test func anUnreadEndOrResetDoesNotSpin() throws {
        for ending in [Peer.close, Peer.reset] {
            try withPair { net, connection, peer in
                // Wait once, so that the registration exists.
                try peer.send("x")
                try hang(connection.read(), timeout: patience)
                connection.shutdownWrite()
                ending(peer)()
                awaitArrival(of: POLLIN, at: net.ledger.accepted[0])
                expect(net.turns { net.settle() } <= 6)
            }
        }
    }

    @Test func anUrgentByteIsPassedOverAndDoesNotSpin() throws {
        try withPair { net, connection, peer in
            let read = connection.read()
            var urgent = UInt8(1)
            expectEqual(send(peer.fd, &urgent, 1, CInt(MSG_OOB)), 1)
            expect(net.turns { net.settle() } <= 5)
            expect(read.isPending)
            try peer.send("ordinary")
            expectEqual(try hang(read, timeout: patience), .bytes(Array("ordinary".utf8)))
        }
    }

    @Test func aWaitingReadKeepsTheConnectionAlive() throws {
        try withNetwork { net in
            weak var witness: Connection?
            let (read, peer): (Guarantee<ReadOutcome>, Peer) = try {
                let (connection, peer) = try net.pair()
                witness = connection
                return (connection.read(), peer)
            }()
            net.settle()
            let isAlive = witness != nil
            expect(isAlive)
            try peer.send("x")
            expectEqual(try hang(read, timeout: patience), .bytes([0x78]))
            let isGone = witness == nil
            expect(isGone)
            expect(!net.ledger.open.contains(net.ledger.accepted[0]))
        }
    }

    @Test func readsOfSeveralConnectionsAreWaitedForTogether() throws {
        weak var witness: Witness?
        try withNetwork { net in
            let pairs = try (0..<3).map { _ in try net.pair() }
            let reads = pairs.map { pair in pair.0.read().map { (outcome: $0, count: 1, place: 2, owner: Witness()) } }
            for (index, pair) in pairs.enumerated() { try pair.1.send([UInt8(index)]) }
            let all = try hang(when(fulfilled: reads), timeout: patience)
            expectEqual(all.map(\.outcome), [.bytes([0]), .bytes([1]), .bytes([2])])
            witness = all[0].owner
        }
        let isGone = witness == nil
        expect(isGone, "the values outlive their promises")
    }
}

/// Makes each value too large for inline storage, and shows when it is released.
private final class Witness {}
