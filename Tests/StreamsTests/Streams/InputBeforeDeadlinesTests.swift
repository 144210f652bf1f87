@testable import PromisesTestSupport

/// A loop that is blocked for longer than a deadline, and then finds the input that has arrived meanwhile.
struct InputBeforeDeadlinesTests {
    private var clock: VirtualClock { net.clock }

    /// Connections, each with the descriptor of its peer, which is not the loop's.
    private func pairs(_ count: Int, _ net: Network) throws -> [(connection: Connection, peer: CInt)] {
        try (0..<count).map { _ in
            var ends: [CInt] = [-1, -1]
            try #require(socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0, &ends) == 0)
            net.ledger.adopt(ends[0])
            return (try Connection(adopting: ends[0]), ends[1])
        }
    }

    /// Interrupts the next calls of epoll_wait.
    private func interruptWaits(_ count: Int, _ net: Network) {
        let real = net.kernel.epollWait
        var left = count
        net.kernel.epollWait = { epoll, events, capacity, timeout in
            left -= 1
            return left >= 0 ? -Int(EINTR) : real(epoll, events, capacity, timeout)
        }
    }

    @Test(
        .network(.virtual),
        .enabled(if: mayHaveDescriptors(2000), "the hard limit of descriptors is below 2,000"),
        arguments: [0, 1, 2, 5], [true, false])
    func noneOfManyConnectionsIsLate(interruptions: Int, isIdle: Bool) throws {
        let pairs = try pairs(450, net)
        let reads = pairs.map { connection, _ -> Promise<[UInt8]> in
            if !isIdle { return connection.receive().timeout(.milliseconds(500)) }
            connection.idleTimeout = .milliseconds(500)
            return connection.receive()
        }
        try net.loop.turn(.poll)
        for pair in pairs { expectEqual(send(pair.peer, "x", 1, 0), 1) }
        clock.advance(by: .milliseconds(800))
        interruptWaits(interruptions, net)
        let results = try hang(when(resolved: reads), timeout: .milliseconds(100))
        let lost = results.filter { if case .failure = $0 { true } else { false } }
        expectEqual(lost.count, 0)
        for pair in pairs {
            pair.connection.abort()
            close(pair.peer)
        }
    }

    @Test(.network(.virtual)) func aHandlerThatHoldsTheLoopWhileEventsAreDeliveredCostsNoAnswer() throws {
        let pairs = try pairs(3, net)
        let holding = pairs[0].connection.forEachChunk { _ -> Promise<Void> in
            // Input that arrives now is not in any batch of events yet.
            for pair in pairs[1...] { expectEqual(send(pair.peer, "y", 1, 0), 1) }
            clock.advance(by: .milliseconds(800))
            return .value
        }
        pairs[1].connection.idleTimeout = .milliseconds(500)
        let idle = pairs[1].connection.receive()
        let limited = pairs[2].connection.receive().timeout(.milliseconds(500))
        try net.loop.turn(.poll)
        expectEqual(send(pairs[0].peer, "x", 1, 0), 1)
        expect(try hang(when(fulfilled: idle, limited), timeout: .seconds(1)) == ([0x79], [0x79]))
        for pair in pairs {
            pair.connection.abort()
            close(pair.peer)
        }
        expect(holding.isRejected)
        holding.cauterize()
    }

    @Test(.network(.virtual)) func activityInsideALongTurnCountsFromItsOwnMoment() throws {
        let pairs = try pairs(2, net)
        pairs[1].connection.idleTimeout = .milliseconds(500)
        let first = pairs[0].connection.forEachChunk { _ -> Promise<Void> in
            clock.advance(by: .milliseconds(400))
            return .value
        }
        let read = pairs[1].connection.receive()
        try net.loop.turn(.poll)
        for pair in pairs { expectEqual(send(pair.peer, "x", 1, 0), 1) }
        try hang(read, timeout: .seconds(1))
        let readAt = clock.now
        let next = pairs[1].connection.read()
        _ = try rejection(of: next.map { if case .failed(let error) = $0 { throw error } })
        expectEqual(readAt.duration(to: clock.now), .milliseconds(500))
        for pair in pairs {
            pair.connection.abort()
            close(pair.peer)
        }
        first.cauterize()
    }

    @Test(.network(.virtual)) func anAnswerThatIsReadyAfterAStallIsSent() throws {
        let (connection, peer) = try pairs(1, net)[0]
        connection.idleTimeout = .milliseconds(500)
        let answered = after(.milliseconds(50)).then { after(.zero) }.then { connection.write("answer") }
        try net.loop.turn(.poll)
        clock.advance(by: .milliseconds(800))
        try hang(answered, timeout: .seconds(1))
        connection.abort()
        close(peer)
    }

    @Test(.network(.virtual), arguments: [0, 5]) func aClosingConnectionWhosePeerHasMadeRoomIsNotReset(
        interruptions: Int
    ) throws {
        let (connection, peer) = try pairs(1, net)[0]
        let bytes = pattern(3 << 20)
        let written = connection.write(bytes)
        expect(connection.queuedBytes > 0)
        let closed = connection.close()
        try net.loop.turn(.poll)
        var received = 0
        var buffer = [UInt8](repeating: 0, count: 65536)
        func take() {
            while true {
                let count = recv(peer, &buffer, buffer.count, CInt(MSG_DONTWAIT))
                if count <= 0 { return }
                received += count
            }
        }
        take()
        clock.advance(by: .seconds(6))
        interruptWaits(interruptions, net)
        while closed.isPending {
            try net.loop.turn(.poll)
            take()
            if written.isFulfilled { _ = shutdown(peer, CInt(SHUT_WR)) }
        }
        expect(written.isFulfilled)
        expectEqual(received, bytes.count)
        close(peer)
    }
}
