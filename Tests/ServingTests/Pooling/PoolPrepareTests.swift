@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

struct PoolPrepareTests {
    private func logIn(_ connection: Connection, _ server: PoolKey) -> Promise<Void> {
        talk("login \(server)", connection).asVoid()
    }

    @Test(.network(.virtual)) func eachNewConnectionIsPreparedOnceWhereTheRouteLeads() throws {
        let address = server.address
        let pool = Pool<Connection>(
            limits: PoolLimits(perKey: 1),
            via: { key in
                if "\(key)" == "nowhere" { throw Flaw(7) }
                return .address(address)
            }, prepare: logIn)
        func ask(_ line: String, _ key: PoolKey) -> Promise<String> { pool.with(key) { talk(line, $0) } }
        let first = ["a", "b"].map { ask($0, "one, by a proxy") }
        expectEqual(pool.counts.all, [1, 0, 0, 2])
        expectEqual(try hang(when(fulfilled: first)), ["a", "b"])
        expectEqual(try hang(ask("c", "other, by a proxy")), "c")
        expect(ask("d", "nowhere"), failsWith: Flaw(7))
        expectEqual(server.lines, ["login one, by a proxy", "a", "b", "login other, by a proxy", "c"])
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
    }

    enum Limit: CaseIterable { case cancelled, waitTimeout, makeTimeout }

    @Test(.network(.virtual), arguments: Limit.allCases) func aPreparationWithoutAnswerEnds(by limit: Limit) throws {
        server.answer = { _, _ in .value }
        func limited(_ each: Limit) -> Duration? { limit == each ? .seconds(3) : nil }
        let limits = PoolLimits(waitTimeout: limited(.waitTimeout), makeTimeout: limited(.makeTimeout))
        let pool = Pool<Connection>(limits: limits, prepare: logIn)
        let begin = net.loop.now
        let request = pool.ask("a", server.address)
        try net.loop.run(until: { server.lines.count == 1 })
        switch limit {
        case .cancelled: request.cancel()
        case .waitTimeout: #expect(throws: PoolError.self) { try hang(request) }
        case .makeTimeout: expect(request, failsWith: PromiseError.timedOut)
        }
        expectEqual(begin.duration(to: net.loop.now).components.seconds, limit == .cancelled ? 0 : 3)
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
}
