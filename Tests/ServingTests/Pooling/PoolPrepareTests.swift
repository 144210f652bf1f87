@testable import PromisesTestSupport

struct PoolPrepareTests {
    private func logIn(_ connection: Connection, _ server: PoolKey) -> Promise<Void> {
        talk("login \(server)", connection).asVoid()
    }

    @Test(.network(.virtual)) func eachNewConnectionIsPreparedOnceBeforeItsFirstUse() throws {
        let pool = Pool<Connection>(limits: PoolLimits(perKey: 1), prepare: logIn)
        let requests = ["a", "b"].map { pool.ask($0, server.address) }
        expectEqual(pool.counts.all, [1, 0, 0, 2])
        expectEqual(try hang(when(fulfilled: requests)), ["a", "b"])
        expect(server.lines == ["login \(server.address)", "a", "b"] && server.accepted.count == 1)
        pool.close()
    }

    @Test(.network(.virtual)) func aRouteSaysWhereToConnect() throws {
        let address = server.address
        let pool = Pool<Connection>(
            via: { key in
                if "\(key)" == "nowhere" { throw Flaw(7) }
                return .address(address)
            }, prepare: logIn)
        func ask(_ line: String, _ key: PoolKey) -> Promise<String> { pool.with(key) { talk(line, $0) } }
        expectEqual(try hang(ask("a", "one, by a proxy")), "a")
        expectEqual(try hang(ask("b", "other, by a proxy")), "b")
        expect(ask("c", "nowhere"), failsWith: Flaw(7))
        expectEqual(server.lines, ["login one, by a proxy", "a", "login other, by a proxy", "b"])
        pool.close()
    }

    @Test(.network(.virtual), arguments: [true, false])
    func aFailureRejectsTheRequestWithItsCauseAndClosesTheConnection(throwing: Bool)
        throws
    {
        var left = 2
        let pool = Pool<Connection>(
            limits: PoolLimits(perKey: 1),
            prepare: { connection, address in
                left -= 1
                if left == 1 && throwing { throw Flaw(7) }
                if left == 1 { return talk("wrong", connection).then { _ in Promise<Void>(error: Flaw(7)) } }
                return logIn(connection, address)
            })
        let requests = ["a", "b"].map { pool.ask($0, server.address) }
        expect(requests[0], failsWith: Flaw(7))
        expectEqual(try hang(requests[1]), "b")
        try net.loop.run(until: { server.accepted.count == 2 && server.accepted[0].isClosed })
        expectEqual(pool.counts.all, [0, 1, 1, 0])
        pool.close()
    }

    @Test(.network(.virtual)) func aServerThatDoesNotAnswerIsGivenUpAtTheTimeLimit() throws {
        server.answer = { _, _ in .value }
        let pool = Pool<Connection>(limits: PoolLimits(perKey: 1, makeTimeout: .seconds(3)), prepare: logIn)
        let begin = net.loop.now
        expect(pool.ask("a", server.address), failsWith: PromiseError.timedOut)
        let waited = begin.duration(to: net.loop.now)
        expect(waited >= .seconds(3) && waited < .seconds(4) && pool.counts.all == [0, 0, 0, 0])
    }

    @Test(.network(.virtual), arguments: [true, false]) func aRequestThatIsCancelledOrTimedOutEndsItsPreparation(
        cancelled: Bool
    ) throws {
        server.answer = { _, _ in .value }
        let pool = Pool<Connection>(limits: PoolLimits(waitTimeout: .seconds(2), makeTimeout: nil), prepare: logIn)
        let request = pool.ask("a", server.address)
        try net.loop.run(until: { server.lines.count == 1 })
        if cancelled { request.cancel() } else { #expect(throws: PoolError.self) { try hang(request) } }
        try net.loop.run(until: { server.accepted[0].isClosed })
        expectEqual(pool.counts.all, [0, 0, 0, 0])
    }

    @Test(.listener(.virtual)) func theFilterAndTheOptionsOfAPreparationStay() throws {
        var accepted = 0
        let served = listener.serve { connection in
            accepted += 1
            return connection.filter(RecordFilter()).then { connection in
                connection.forEachLine { connection.write($0 + "\n") }
            }
        }
        let pool = Pool<Connection>(
            limits: PoolLimits(perKey: 1),
            prepare: { connection, _ in
                try connection.set(.keepAlive, to: true)
                connection.writeQueueLimit = 1
                return connection.filter(RecordFilter()).asVoid()
            })
        for text in ["a", "b"] {
            let reply = pool.with(.address(listener.localAddress)) { connection in
                let isKept = try connection.value(of: .keepAlive)
                expect(isKept && connection.writeQueueLimit > 1)
                return talk(text, connection)
            }
            expectEqual(try hang(reply), text)
        }
        expectEqual(accepted, 1)
        pool.close()
        try listener.end(served)
    }

    @Test(.network(.virtual)) func aConnectionWithOptionsOrAFilterOfARequestIsNotUsedAgain() throws {
        struct Plain: ConnectionFilter {
            func receive(_ bytes: RawSpan, _ output: inout FilterOutput) { output.deliver(bytes) }
            func write(_ bytes: RawSpan, _ output: inout FilterOutput) { output.send(bytes) }
        }
        let pool = Pool<Connection>(limits: PoolLimits(perKey: 1))
        let uses: [(Connection) throws -> Void] = [
            { try $0.set(.keepAlive, to: true) },
            { $0.filter(Plain()).cauterize() },
            { _ in },
        ]
        for use in uses {
            let reply = pool.with(.address(server.address)) { connection in
                let isKept = try connection.value(of: .keepAlive)
                expect(!isKept)
                try use(connection)
                return talk("x", connection)
            }
            try hang(reply)
        }
        try hang(pool.ask("y", server.address))
        expectEqual(server.accepted.count, 3, "a connection each for the first two, and one for the others")
    }
}
