@testable import PromisesTestSupport

struct HandlerErrorTests {
    @Test(.listener) func eachIsReportedAlsoAfterAPauseWithoutConnections() throws {
        let tally = Tally()
        var flaws: [Flaw?] = []
        var count = 0
        let served = listener.serve(onError: { [token = tally.token()] error, _ in
            withExtendedLifetime(token) { flaws.append(error as? Flaw) }
        }) { connection -> Promise<Void> in
            count += 1
            if count.isMultiple(of: 2) { return echo(connection) }
            throw Flaw(count)
        }
        for number in 1...6 {
            let client = try Peer(to: listener.localAddress)
            client.end()
            expect(try hang(elsewhere { try client.readToEnd() }, timeout: patience).isEmpty)
            try net.loop.run(until: { net.ledger.accepted.count == number && listener.activeConnections == 0 })
        }
        expectEqual(flaws, [Flaw(1), Flaw(3), Flaw(5)])
        expectEqual(tally.alive, 1)
        try listener.end(served)
        try net.loop.turn(.poll)
        expect(tally.alive == 0 && listener.activeConnections == 0)
    }

    /// A program knows of its own abort; `onError` is for errors that it does not know of.
    @Test(.listener) func anAbortOrACloseByTheProgramIsNoErrorOfTheHandler() throws {
        var connections: [Connection] = []
        var errors: [any Error] = []
        var reads: [any Error] = []
        let served = listener.serve(onError: { error, _ in errors.append(error) }) { connection -> Promise<Void> in
            connections.append(connection)
            return connection.readLine().asVoid().tapError(policy: .allErrors) { reads.append($0) }
        }
        let clients = try (0..<3).map { _ in try Peer(to: listener.localAddress) }
        try net.loop.run(until: { connections.count == 3 })
        connections[0].abort()
        connections[1].close(linger: .zero)
        clients[2].reset()
        try net.loop.run(until: { listener.activeConnections == 0 })
        expectEqual(errors.map { ($0 as? SystemError)?.code }, [ECONNRESET])
        expectEqual(reads.map(\.isCancelled), [true, true, false])
        try listener.end(served)
    }

    /// Bytes that a close could not deliver in time count as failed.
    @Test(.network) func aWriteThatACloseGivesUpHasFailed() throws {
        let (connection, _) = try net.pair()
        net.limitSends(to: 0)
        let write = connection.write("x")
        connection.close(linger: .zero)
        expect(code(write) == ECANCELED && !write.isCancelled)
        let (other, _) = try net.pair()
        let aborted = other.write("x")
        other.abort()
        expect(code(aborted) == ECANCELED && aborted.isCancelled)
    }
}
