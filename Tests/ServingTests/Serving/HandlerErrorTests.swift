@testable import PromisesTestSupport

struct HandlerErrorTests {
    private struct Failure: Error { let number: Int }

    private final class Reports {
        var numbers: [Int] = []
    }

    private func serve(_ listener: Listener, _ reports: Reports, _ token: Tally.Token) -> Promise<DrainResult> {
        var count = 0
        return listener.serve(onError: { [token] error, _ in
            withExtendedLifetime(token) { if let error = error as? Failure { reports.numbers.append(error.number) } }
        }) { connection -> Promise<Void> in
            count += 1
            if count.isMultiple(of: 2) { return echo(connection) }
            throw Failure(number: count)
        }
    }

    @Test(.network) func eachIsReportedAlsoAfterAPauseWithoutConnections() throws {
        let tally = Tally()
        let reports = Reports()
        let listener = try net.listen()
        let served = serve(listener, reports, tally.token())
        for number in 1...6 {
            let client = try Peer(to: listener.localAddress)
            client.end()
            expect(try hang(elsewhere { try client.readToEnd() }, timeout: patience).isEmpty)
            try net.loop.run(until: { net.ledger.accepted.count == number && listener.activeConnections == 0 })
        }
        expectEqual(reports.numbers, [1, 3, 5])
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
