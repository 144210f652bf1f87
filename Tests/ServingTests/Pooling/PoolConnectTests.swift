@testable import PromisesTestSupport

/// Connects that fail, hang or are no longer needed, while requests wait for them.
struct PoolConnectTests {
    @Test func aDeadServerStrandsNoRequest() throws {
        try withNetwork(clock: VirtualClock(), turns: 100_000) { net in
            let port = try ReservedPort()
            let pool = Pool<Connection>(limits: PoolLimits(perKey: 3, waitTimeout: nil))
            let requests = (0..<10_000).map { _ in pool.ask("?", port.address) }
            let results = try hang(when(resolved: requests), timeout: patience)
            let refused = results.filter { result in
                guard case .failure(let error as SystemError) = result else { return false }
                return error.code == ECONNREFUSED
            }
            expectEqual(refused.count, 10_000)
            expectEqual(pool.counts.all, [0, 0, 0, 0])
        }
    }

    @Test func aServerThatRecoversServesTheRestOfTheLine() throws {
        try withPool(PoolLimits(perKey: 1)) { net, server, pool in
            let real = net.kernel.startConnect
            var failures = 3
            net.kernel.startConnect = { fd, address, length in
                failures -= 1
                return failures >= 0 ? -Int(ENETUNREACH) : real(fd, address, length)
            }
            let requests = (0..<6).map { pool.ask("\($0)", server.address) }
            let results = try hang(when(resolved: requests), timeout: patience)
            expectEqual(results.map { (try? $0.get()) ?? "failed" }, ["failed", "failed", "failed", "3", "4", "5"])
            expectEqual(server.accepted.count, 1)
        }
    }

    @Test func aConnectThatHangsGivesWayAtItsTimeout() throws {
        try withNetwork(clock: VirtualClock()) { net in
            let hole = try net.listen(backlog: 0)
            let filler = try Peer(to: hole.localAddress)
            let pool = Pool<Connection>(
                limits: PoolLimits(perKey: 1, waitTimeout: .seconds(25), makeTimeout: .seconds(10)))
            let requests = (0..<4).map { _ in pool.ask("?", hole.localAddress) }
            let results = hang(when(resolved: requests))
            let waited = PoolError.timedOut(
                key: .address(hole.localAddress), limit: 1, waited: .seconds(25))
            for (index, result) in results.enumerated() {
                guard case .failure(let error) = result else {
                    Issue.record("request \(index) has an answer")
                    continue
                }
                if index < 2 {
                    expect(error as? PromiseError == .timedOut)
                } else {
                    expect(error as? PoolError == waited)
                }
            }
            expectEqual(net.loop.now, LoopInstant(nanoseconds: 25_000_000_000))
            expectEqual(pool.counts.all, [0, 0, 0, 0], "the connect that no request needs has ended")
            filler.close()
            hole.close()
        }
    }

    @Test func cancellingTheLastRequestEndsItsConnect() throws {
        try withNetwork(clock: VirtualClock()) { net in
            let hole = try net.listen(backlog: 0)
            let filler = try Peer(to: hole.localAddress)
            let pool = Pool<Connection>()
            let requests = (0..<2).map { _ in pool.ask("?", hole.localAddress) }
            expectEqual(pool.counts.all, [2, 0, 0, 2])
            let open = net.ledger.open.count
            for (index, request) in requests.enumerated() {
                request.cancel()
                net.settle(.milliseconds(1))
                expectEqual(pool.counts.all, [1 - index, 0, 0, 1 - index])
                expectEqual(net.ledger.open.count, open - 1 - index)
            }
            filler.close()
            hole.close()
            // Nothing keeps the loop alive.
            try net.loop.run()
        }
    }

    @Test func aConnectThatIsNotNeededAnyMoreBecomesIdle() throws {
        try withPool(PoolLimits(perKey: 2)) { net, server, pool in
            try hang(pool.ask("first", server.address))
            var second: Promise<String>?
            let first = pool.with(.address(server.address)) { connection -> Promise<Void> in
                // A connect begins; this request's connection is free before the connect is done.
                second = pool.ask("second", server.address)
                return .value
            }
            try hang(first)
            expectEqual(try hang(second!), "second")
            net.settle(.milliseconds(1))
            expectEqual(pool.counts.all, [0, 2, 2, 0])
        }
    }

    @Test func aTextThatIsNoAddressIsRefusedByEachRequest() throws {
        try withNetwork(clock: VirtualClock()) { _ in
            let pool = Pool<Connection>()
            for _ in 0..<2 {
                let request = pool.with("no port") { _ in Promise<Void>.value }
                #expect(throws: SocketAddress.ParseError.self) { try hang(request) }
            }
            let none = pool.with(.addresses([])) { _ in Promise<Void>.value }
            #expect(throws: SystemError.self) { try hang(none) }
            expectEqual(pool.counts.all, [0, 0, 0, 0])
        }
    }
}
