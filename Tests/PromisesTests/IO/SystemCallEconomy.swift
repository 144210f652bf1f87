import Glibc
import Promises
import Reactor
import Testing

@Suite struct SystemCallEconomy {
    private func total(_ net: Network) -> Int { net.loop.metrics.systemCalls.values.reduce(0, +) }

    @Test func anEchoRoundTripCostsThree() throws {
        try withNetwork(turns: 2500) { net in
            let (connection, peer) = try net.pair()
            let served = echo(connection)
            let client = elsewhere {
                for number in 0..<1000 {
                    try peer.send([UInt8(truncatingIfNeeded: number)])
                    #expect(try peer.receive() == [UInt8(truncatingIfNeeded: number)])
                }
                peer.end()
            }
            let before = total(net)
            try hang(served, timeout: patience)
            try hang(client, timeout: patience)
            #expect(Double(total(net) - before) / 1000 <= 3.2)
            #expect(net.calls(.epollControl) <= 8)
        }
    }

    @Test func manyConnectionsShareTheWait() throws {
        try withNetwork(turns: 2500) { net in
            let pairs = try (0..<50).map { _ in try net.pair() }
            let served = pairs.map { echo($0.0) }
            try net.loop.turn(.poll)
            let before = (total(net), net.calls(.epollWait))
            for (index, pair) in pairs.enumerated() {
                try pair.1.send("x")
                awaitArrival(of: POLLIN, at: net.ledger.accepted[index])
            }
            try net.loop.run(until: { net.calls(.send) == 50 })
            #expect(net.calls(.epollWait) - before.1 <= 2)
            #expect(total(net) - before.0 <= 102)
            for pair in pairs { pair.1.end() }
            try hang(when(fulfilled: served), timeout: patience)
        }
    }

    @Test func aConnectionsWholeLifeCostsTen() throws {
        try withNetwork(turns: 2500) { net in
            let listener = try net.listen()
            let address = listener.localAddress
            let served = listener.serve { echo($0) }
            let client = elsewhere {
                for _ in 0..<100 {
                    let peer = try Peer(to: address)
                    try peer.send("x")
                    #expect(try peer.receive() == [0x78])
                    peer.end()
                    #expect(try peer.receive() == [])
                }
            }
            let before = total(net)
            try hang(client, timeout: patience)
            listener.close()
            try hang(served, timeout: patience)
            // accept4 twice, setsockopt, epoll_ctl twice, recv twice, send, shutdown, close, and three waits.
            #expect(Double(total(net) - before) / 100 <= 13.2)
        }
    }

    @Test func waitingCostsNothing() throws {
        try withNetwork { net in
            let pairs = try (0..<20).map { _ in try net.pair() }
            let reads = pairs.map { $0.0.read() }
            try net.loop.turn(.poll)
            let before = total(net)
            net.settle(.milliseconds(50))
            // A timer's descriptor, its registration, its setting, and the wait.
            #expect(total(net) - before <= 6)
            #expect(reads.allSatisfy { $0.isPending })
            // Without this the optimiser lets the peers go, and so end, before the wait.
            withExtendedLifetime(pairs) {}
        }
    }
}
