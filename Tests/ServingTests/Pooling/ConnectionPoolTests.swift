@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

struct ConnectionPoolTests {
    @Test(.network(.virtual)) func aConnectionServesOneRequestAfterAnother() throws {
        let pool = Pool<Connection>()
        for text in ["a", "b", "c"] { expectEqual(try hang(pool.ask(text, server.address)), text) }
        expectEqual(server.accepted.count, 1)
        expectEqual(pool.countsByKey.mapValues(\.all), [.address(server.address): [0, 1, 1, 0]])
        // The text of an address is the address.
        let reply = pool.with(.name(server.address.description)) { talk("d", $0) }
        expectEqual(try hang(reply), "d")
        let other = pool.with(.addresses([server.address])) { talk("e", $0) }
        expectEqual(try hang(other), "e")
        expectEqual(server.accepted.count, 2, "a list of addresses has connections of its own")
    }

    @Test(.network(.virtual)) func theConnectionThatWasUsedLastIsUsedFirstAndTheOthersExpire() throws {
        let pool = Pool<Connection>(limits: PoolLimits(perKey: 3, idleTimeout: .seconds(60)))
        try hang(when(fulfilled: (0..<3).map { pool.ask("\($0)", server.address) }))
        expectEqual(pool.counts.all, [0, 3, 3, 0])
        for _ in 0..<5 {
            net.clock.advance(by: .seconds(20))
            try hang(pool.ask("again", server.address))
        }
        net.settle(.milliseconds(1))
        expectEqual(pool.counts.all, [0, 1, 1, 0], "two have been idle for 60 seconds")
        expectEqual(server.accepted.count, 3)
        net.settle(.seconds(59))
        expectEqual(pool.counts.idle, 1)
        net.settle(.seconds(2))
        expectEqual(pool.counts.all, [0, 0, 0, 0])
    }

    @Test(.network(.virtual)) func aRequestThatWaitsTooLongNamesAddressLimitAndTime() throws {
        let pool = Pool<Connection>(limits: PoolLimits(perKey: 1, waitTimeout: .seconds(5), idleTimeout: nil))
        let long = pool.with(.address(server.address)) { _ in after(.seconds(7)) }
        net.settle(.seconds(1))
        let late = pool.ask("late", server.address)
        net.settle(.seconds(2))
        let served = pool.ask("served", server.address)
        let key = PoolKey.address(server.address)
        expect(late, failsWith: PoolError.timedOut(key: key, limit: 1, waited: .seconds(5)))
        expect("\(late.error!)".contains("\(key)"))
        try hang(long)
        expectEqual(try hang(served), "served")
        expectEqual(pool.counts.all, [0, 1, 1, 0])
    }

    @Test(.network(.virtual)) func aBodyThatWaitsForItsOwnConnectionEndsAfterTheDefaultTime() throws {
        let pool = Pool<Connection>(limits: PoolLimits(perKey: 1))
        let key = PoolKey.address(server.address)
        let stuck = pool.with(key) { _ in pool.ask("inner", server.address) }
        expect(stuck, failsWith: PoolError.timedOut(key: key, limit: 1, waited: .seconds(30)))
        expectEqual(pool.counts.waiting, 0)
    }

    @Test(.network(.virtual)) func moreThanMayWaitAreRefused() throws {
        let pool = Pool<Connection>(limits: PoolLimits(perKey: 1, waiting: 1))
        let requests = (0..<3).map { pool.ask("\($0)", server.address) }
        let key = PoolKey.address(server.address)
        expect(requests[2], failsWith: PoolError.tooManyWaiting(key: key, limit: 1))
        expectEqual(try hang(requests[0]), "0")
        expectEqual(try hang(requests[1]), "1")
    }

    @Test(.network) func limitsBelowOneAreRefused() throws {
        for (limits, text) in [
            (PoolLimits(perKey: 0), "perKey: 0 is below 1"), (PoolLimits(total: 0), "total: 0 is below 1"),
            (PoolLimits(waiting: -1), "waiting: -1 is below 0"),
        ] {
            let pool = Pool<Connection>(limits: limits)
            let request = pool.with("127.0.0.1:1") { _ in Promise<Void>.value }
            expect(request, failsWith: PromiseError.badInput(text))
            expectEqual(pool.counts.all, [0, 0, 0, 0])
        }
    }

    @Test(.network(.virtual)) func aRejectedRequestAbortsItsConnection() throws {
        server.answer = { _, _ in .value }
        let pool = Pool<Connection>()
        let silent = pool.with(.address(server.address)) { talk("?", $0).timeout(.seconds(1)) }
        expect(silent, failsWith: PromiseError.timedOut)
        expectEqual(pool.counts.all, [0, 0, 0, 0])
        expectEqual(hang(server.accepted[0].closed), .failed(SystemError(.receive, ECONNRESET)))
        let thrown = pool.with(.address(server.address)) { _ -> Promise<Void> in throw Flaw(1) }
        expect(thrown, failsWith: Flaw(1))
        expectEqual(pool.counts.all, [0, 0, 0, 0])
    }

    enum Deed: CaseIterable {
        case closes, aborts, halfCloses, leavesARead, leavesInput, leavesAQueue, leavesAWatch, detaches
        case setsAnOption, installsAFilter
    }

    @Test(.network(.virtual), arguments: Deed.allCases) func aConnectionOfNoFurtherUseDoesNotReturn(deed: Deed) throws {
        server.answer = { line, connection in connection.write(line == "two" ? "1\n2\n" : line + "\n") }
        let pool = Pool<Connection>(limits: PoolLimits(perKey: 1))
        var descriptor: CInt?
        try hang(
            pool.with(.address(server.address)) { connection -> Promise<Void> in
                switch deed {
                case .closes: connection.close()
                case .aborts: connection.abort()
                case .halfCloses: connection.shutdownWrite().cauterize()
                case .leavesARead: connection.read().done { _ in }
                case .leavesInput: return talk("two", connection).asVoid()
                case .leavesAQueue: connection.write(pattern(8 << 20)).ignoringErrors()
                case .leavesAWatch: connection.peerGone().done { _ in }
                case .detaches: descriptor = try connection.detach()
                case .setsAnOption: try connection.set(.keepAlive, to: true)
                case .installsAFilter: return connection.filter(PlainFilter()).asVoid()
                }
                return .value
            })
        expectEqual(pool.counts.all, [0, deed == .leavesAQueue ? 1 : 0, 0, 0], "one with a queue is open for a while")
        expectEqual(try hang(pool.ask("next", server.address)), "next")
        expectEqual(server.accepted.count, 2)
        if let descriptor {
            net.ledger.disown(descriptor)
            close(descriptor)
        }
    }

    @Test(.network(.virtual)) func theSettingsOfARequestEndWithIt() throws {
        let pool = Pool<Connection>(limits: PoolLimits(perKey: 1))
        var limit = 0
        var watermarks = (low: 0, high: 0)
        try hang(
            pool.with(.address(server.address)) { connection in
                (limit, watermarks) = (connection.writeQueueLimit, connection.writeWatermarks)
                connection.frameTimeouts = FrameTimeouts(idle: .seconds(1), frame: .seconds(1))
                connection.idleTimeout = .seconds(3)
                connection.readRate = 1000
                connection.writeQueueLimit = 1
                connection.writeWatermarks = (low: 0, high: 1)
                return talk("a", connection)
            })
        let next = pool.with(.address(server.address)) { connection in
            expect(connection.frameTimeouts == nil && connection.idleTimeout == nil && connection.readRate == nil)
            expect(connection.writeQueueLimit == limit && connection.writeWatermarks == watermarks)
            return talk("b", connection)
        }
        expectEqual(try hang(next), "b")
        expectEqual(server.accepted.count, 1)
    }

    @Test(.network(.virtual)) func aWatchThatHasEndedWithItsWorkCostsNoConnection() throws {
        let pool = Pool<Connection>(limits: PoolLimits(perKey: 1))
        for text in ["a", "b"] {
            let reply = pool.with(.address(server.address)) { connection in
                connection.cancelWhenPeerGone { talk(text, connection) }
            }
            expectEqual(try hang(reply), text)
        }
        expectEqual(server.accepted.count, 1)
    }

    @Test(.network(.virtual)) func aConnectionIsClosedAtTheEndOfItsLifetime() throws {
        let pool = Pool<Connection>(limits: PoolLimits(perKey: 2, idleTimeout: nil, maxLifetime: .seconds(100)))
        try hang(pool.ask("a", server.address))
        hang(after(.seconds(60)))
        try hang(pool.ask("b", server.address))
        expect(server.accepted.count == 1 && pool.counts.idle == 1)
        hang(after(.seconds(41)))
        expectEqual(pool.counts.all, [0, 0, 0, 0])
        // In use at its end, it is closed after its request.
        let slow = pool.with(.address(server.address)) { connection in
            after(.seconds(150)).then { talk("c", connection) }
        }
        expectEqual(try hang(slow), "c")
        expect(pool.counts.all == [0, 0, 0, 0] && server.accepted.count == 2)
    }
}
