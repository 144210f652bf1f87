@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// Virtual time: sent bytes have arrived before the clock moves.
struct WriteTimeoutTests {
    private func pair(_ net: Network, filtered: Bool) throws -> (Connection, Peer) {
        filtered ? try net.filteredPair(receiveBuffer: 262_144) : try net.pair(receiveBuffer: 262_144)
    }

    /// More than the kernel takes while the peer reads as much as these tests allow.
    private let block = [UInt8](repeating: 7, count: 24 << 20)

    /// Bytes from the peer do not count meanwhile.
    @Test(.network(.virtual), arguments: [false, true]) func aStalledWriteFails(filtered: Bool) throws {
        let (connection, peer) = try pair(net, filtered: filtered)
        connection.writeTimeout = .seconds(60)
        let all = connection.forEachChunk { _ in }
        let write = connection.write(block)
        let begin = net.loop.now
        for _ in 0..<5 {
            hang(after(.seconds(10)))
            try net.deliver(filtered ? RecordFilter.record(.pong) : [1], from: peer)
            try net.loop.turn(.poll)
        }
        expect(write.isPending)
        expectEqual(try rejection(of: write), ETIMEDOUT)
        expectEqual(begin.duration(to: net.loop.now), .seconds(60))
        expectEqual(try rejection(of: all), ETIMEDOUT)
        expectEqual(code(connection.write("x")), ETIMEDOUT)
        connection.close()
        expectEqual(peer.failureOfReading(), ECONNRESET)
    }

    @Test(.network(.virtual, turns: 4000), arguments: [false, true]) func aSlowPeerIsServedForAsLongAsItTakesSomething(
        filtered: Bool
    ) throws {
        let (connection, peer) = try pair(net, filtered: filtered)
        connection.writeTimeout = .seconds(60)
        let write = connection.write(block)
        for _ in 0..<3 {
            let before = connection.bytesSent
            // The kernel reports room when a third of its buffer is free.
            while connection.bytesSent == before {
                _ = try peer.receive(exactly: 65_536)
                try net.loop.turn(.poll)
            }
            hang(after(.seconds(50)))
        }
        expect(write.isPending)
        expectEqual(try rejection(of: write), ETIMEDOUT)
    }

    /// The filter makes the output when the input arrives, not when the write begins.
    @Test(.network(.virtual)) func aStalledWriteThatNeededInputFails() throws {
        let (connection, peer) = try pair(net, filtered: true)
        connection.writeTimeout = .seconds(60)
        try holdWrites(of: connection, by: peer)
        let write = connection.write(block)
        try net.deliver(RecordFilter.record(.release), from: peer)
        try net.loop.turn(.poll)
        let begin = net.loop.now
        hang(after(.seconds(50)))
        expect(write.isPending)
        expectEqual(try rejection(of: write), ETIMEDOUT)
        expectEqual(begin.duration(to: net.loop.now), .seconds(60))
    }

    @Test(.pair(.virtual)) func nothingIsLimitedWhileNoWriteWaits() throws {
        connection.writeTimeout = .seconds(1)
        for _ in 0..<3 {
            hang(after(.seconds(3600)))
            try hang(connection.write("x"))
            expectEqual(try peer.receive(exactly: 1), [0x78])
        }
        let read = connection.read()
        hang(after(.seconds(3600)))
        try net.deliver("y", from: peer)
        expectEqual(hang(read), .bytes([0x79]))
    }

    /// The loop was delayed; its peer was not.
    @Test(.network(.virtual, turns: 4000)) func aStallOfTheLoopIsNotOneOfThePeer() throws {
        let (connection, peer) = try pair(net, filtered: false)
        connection.writeTimeout = .seconds(60)
        let write = connection.write(block)
        let half = connection.bytesSent / 2
        for _ in 0..<3 {
            _ = try peer.receive(exactly: half)
            awaitArrival(of: POLLOUT, at: net.ledger.accepted[0])
            net.clock.advance(by: .seconds(600))
            try net.loop.turn(.poll)
            try net.loop.turn(.poll)
            expect(write.isPending)
        }
        connection.abort()
        expectEqual(try rejection(of: write), ECANCELED)
    }

    @Test(.network(.virtual)) func itCanBeChangedAndTakenAway() throws {
        let (connection, _) = try pair(net, filtered: false)
        expectEqual(connection.writeTimeout, nil)
        connection.writeTimeout = nil
        let write = connection.write(block)
        connection.writeTimeout = .seconds(60)
        hang(after(.seconds(50)))
        connection.writeTimeout = nil
        hang(after(.seconds(600)))
        expect(write.isPending)
        connection.writeTimeout = .seconds(5)
        let begin = net.loop.now
        expectEqual(try rejection(of: write), ETIMEDOUT)
        expectEqual(begin.duration(to: net.loop.now), .seconds(5))
    }

    @Test(.network(.virtual)) func aCloseIsNotLimitedByIt() throws {
        let (connection, _) = try pair(net, filtered: false)
        connection.writeTimeout = .seconds(1)
        let write = connection.write(block)
        let begin = net.loop.now
        hang(connection.close(linger: .seconds(20)))
        expectEqual(begin.duration(to: net.loop.now), .seconds(20))
        expectEqual(code(write), ECANCELED)
    }
}
