@testable import Promises
@testable import PromisesTestSupport
@testable import ReactorIO
@testable import ReactorIOTestSupport

/// The end of a pool: closed, drained, released, with its loop. `withNetwork` checks that no descriptor is left.
struct PoolEndTests {
    @Test(.listener(.virtual)) func anIdleConnectionDoesNotKeepTheLoopAlive() throws {
        let accepted = listener.accept()
        let pool = Pool<Connection>()
        try hang(pool.with(.address(listener.localAddress)) { _ in accepted.asVoid() })
        listener.close()
        expectEqual(pool.counts.idle, 1)
        expect(!net.loop.isAlive)
        try net.loop.run()
        expectEqual(pool.counts.idle, 1)
        let reasons = net.loop.keepAliveReport
        expect(reasons.isEmpty && reasons.descriptors.count == 1 && reasons.unreferencedTimers == 1)
        // In use it keeps the loop alive again, as does a waiting request.
        let busy = pool.with(.address(listener.localAddress)) { $0.readLine() }
        expect(net.loop.isAlive)
        net.settle(.milliseconds(1))
        expect(net.loop.keepAliveReport.descriptors.contains { $0.isReferenced })
        busy.cancel()
        net.settle(.milliseconds(1))
        expect(pool.counts.all == [0, 0, 0, 0] && !net.loop.isAlive)
    }

    @Test(.network(.virtual)) func closeRejectsThoseThatWaitAndLetsTheOthersFinish() throws {
        let pool = Pool<Connection>(limits: PoolLimits(perKey: 1))
        let running = pool.with(.address(server.address)) { connection in
            after(.seconds(1)).then { talk("running", connection) }
        }
        let waiting = pool.ask("waiting", server.address)
        net.settle(.milliseconds(1))
        pool.close()
        let closed = PoolError.closed(key: .address(server.address))
        expect(waiting, failsWith: closed)
        expectEqual(pool.counts.all, [0, 1, 0, 0])
        expect(pool.ask("late", server.address), failsWith: closed)
        expectEqual(try hang(running), "running")
        expectEqual(pool.counts.all, [0, 0, 0, 0])
    }

    @Test(.network(.virtual)) func drainServesThoseThatWaitAndThenEnds() throws {
        let pool = Pool<Connection>(limits: PoolLimits(perKey: 1))
        try hang(pool.ask("idle", server.address))
        let requests = (0..<3).map { number in
            pool.with(.address(server.address)) { connection in
                after(.seconds(1)).then { talk("\(number)", connection) }
            }
        }
        let drained = pool.drain(deadline: .seconds(10))
        expect(pool.drain(deadline: .zero).isPending, "the first deadline stands")
        expect(pool.ask("late", server.address), failsWith: PoolError.closed(key: .address(server.address)))
        let result = hang(drained)
        expectEqual(requests.map(\.settledValue), ["0", "1", "2"])
        expect(result.finished == 3 && result.aborted == 0 && result.rejected == 0)
        expect(net.loop.now.nanoseconds < 4_000_000_000)
        expectEqual(pool.counts.all, [0, 0, 0, 0])
        expectEqual(hang(pool.drain(deadline: .seconds(1))), result)
        // With idle connections only, it ends at once.
        let idle = Pool<Connection>()
        try hang(idle.ask("idle", server.address))
        let begin = net.loop.now
        hang(idle.drain(deadline: .seconds(10)))
        expect(begin.duration(to: net.loop.now) < .seconds(1))
    }

    @Test(.listener(.virtual)) func aCloseByTheBodyWaitsForNoPeer() throws {
        let accepted = listener.accept()
        let pool = Pool<Connection>(limits: PoolLimits(perKey: 1))
        let open = net.ledger.open.count
        let request = pool.with(.address(listener.localAddress)) { connection in
            accepted.asVoid().get { connection.close() }
        }
        try hang(request)
        expectEqual(pool.counts.all, [0, 0, 0, 0])
        expectEqual(net.ledger.open.count, open + 1, "the peer's, which has not ended")
        expectEqual(accepted.settledValue.map { hang($0.read()) }, .end, "not a reset")
    }

    @Test(.listener(.virtual), arguments: [false, true]) func aConnectionCountsUntilWhatIsQueuedHasLeft(drains: Bool)
        throws
    {
        let accepted = listener.accept()
        let pool = Pool<Connection>(limits: PoolLimits(perKey: 1))
        let request = pool.with(.address(listener.localAddress)) { connection in
            accepted.asVoid().get {
                connection.write(pattern(8 << 20)).ignoringErrors()
                connection.close()
            }
        }
        try hang(request)
        expectEqual(pool.counts.all, [0, 1, 0, 0])
        if drains {
            let drained = pool.drain(deadline: .seconds(2))
            net.settle(.seconds(1))
            expect(drained.isPending)
            net.settle(.seconds(2))
            expectEqual(drained.settledValue?.aborted, 1)
        } else {
            // The peer, which reads nothing, is aborted.
            net.settle(.seconds(31))
        }
        expectEqual(pool.counts.all, [0, 0, 0, 0])
    }

    @Test(.network(.virtual)) func requestsThatWaitRetainThePoolAndIdleConnectionsDoNot() throws {
        weak var witness: Pool<Connection>?
        var requests: [Promise<String>] = []
        let timers = net.loop.metrics.timers
        do {
            let pool = Pool<Connection>(limits: PoolLimits(perKey: 1))
            witness = pool
            requests = (0..<3).map { pool.ask("\($0)", server.address) }
        }
        expectEqual(try hang(when(fulfilled: requests)), ["0", "1", "2"])
        net.settle(.milliseconds(1))
        expect(witness == nil)
        expect(server.accepted[0].isClosed, "its idle connection has been closed")
        expectEqual(net.loop.metrics.timers, timers)
    }

    enum AtLoopEnd: CaseIterable { case open, draining, released }

    @Test(arguments: AtLoopEnd.allCases) func theLoopEndsWithRequestsInAllStates(state: AtLoopEnd) throws {
        var pool: Pool<Connection>?
        var drained: Guarantee<PoolDrainResult>?
        var requests: [Promise<String>] = []
        try withNetwork(clock: VirtualClock()) { net in
            let hole = try net.listen(backlog: 0)
            let filler = try Peer(to: hole.localAddress)
            pool = Pool<Connection>(limits: PoolLimits(perKey: 2, waitTimeout: nil, idleTimeout: nil))
            try hang(when(fulfilled: (0..<2).map { pool!.ask("\($0)", server.address) }))
            requests.append(pool!.with(.address(server.address)) { _ in after(.seconds(1)).map { "late" } })
            requests += (0..<4).map { pool!.ask("\($0)", hole.localAddress) }
            let isAsync = Promise(on: net.loop) { [pool = pool!] in
                try await pool.with(.address(server.address)) { _ in
                    try await pause(100_000).value
                    return "late"
                }
            }
            requests.append(isAsync)
            net.settle(.milliseconds(1))
            expectEqual(pool!.counts.all, [2, 2, 0, 4])
            let counts = pool!.countsByKey.mapValues(\.all)
            expectEqual(counts, [.address(server.address): [0, 2, 0, 0], .address(hole.localAddress): [2, 0, 0, 4]])
            switch state {
            case .open: break
            case .draining: drained = pool!.drain(deadline: .seconds(10))
            case .released: pool = nil
            }
            withExtendedLifetime(filler) {}
        }
        // A handler on another thread that waits for a request is notified that no connection will be opened.
        for request in requests { expect(request.isRejected) }
        if let pool { expectEqual(pool.counts.all, [0, 0, 0, 0]) }
        if let drained { expectEqual(drained.settledValue?.aborted, 2) }
    }

    /// By a job that is released without being run.
    @Test func aPoolThatIsReleasedAsTheLoopEndsReleasesItsConnections() throws {
        weak var idle: Connection?
        let workshop = Workshop()
        try withNetwork(clock: VirtualClock()) { net in
            let (connections, items) = (Pool<Connection>(), workshop.pool())
            let request = connections.with(.address(server.address)) { connection in
                idle = connection
                return talk("x", connection)
            }
            try hang(request)
            try hang(items.with { _ in Promise.value })
            net.loop.enqueue { withExtendedLifetime((connections, items)) {} }
        }
        expect(idle == nil)
        workshop.expectAllClosed()
    }

    @Test(.network(.virtual)) func aRequestThatMayWaitForeverDoesNotKeepTheLoopAliveByItself() throws {
        let pool = Pool<Connection>(limits: PoolLimits(perKey: 1, waitTimeout: nil))
        var resolver: Resolver<Void>?
        let busy = pool.with(.address(server.address)) { _ -> Promise<Void> in
            let (promise, resolve) = Promise<Void>.pending()
            resolver = resolve
            return promise
        }
        let waiting = pool.ask("waiting", server.address)
        net.settle(.milliseconds(1))
        server.listener.close()
        server.accepted[0].abort()
        // Only something outside the loop could still settle the first request.
        try net.loop.run()
        expect(busy.isPending && waiting.isPending)
        waiting.ignoringErrors()
        resolver?.fulfill()
        pool.close()
        net.settle(.milliseconds(1))
        expect(waiting.error is PoolError)
    }

    @Test(.network(.virtual)) func aConnectionThatIsAbortedBeforeItsRequestBeginsIsNotLent() throws {
        let pool = Pool<Connection>()
        try hang(pool.ask("first", server.address))
        var calls = 0
        let request = pool.with(.address(server.address)) { _ -> Promise<Void> in
            calls += 1
            return .value
        }
        // A drain whose deadline passed before the body could be called.
        pool.state.abort()
        pool.perform()
        #expect(throws: PoolError.self) { try hang(request) }
        expectEqual(calls, 0)
    }

    enum Start: CaseIterable { case make, check, body }

    /// The end of the pool finds no promise to cancel yet.
    @Test(.network(.virtual), arguments: Start.allCases) func workThatEndsThePoolInItsOwnStartIsCancelled(start: Start)
        throws
    {
        var pool: Pool<Item>?
        var stops = 0
        let (work, resolver) = Promise<Void>.pending()
        resolver.onCancel { stops += 1 }
        func end(in place: Start) -> Promise<Void> {
            guard place == start, let ending = pool.take() else { return .value }
            ending.drain(deadline: .zero)
            hang(after(.milliseconds(1)))
            return work
        }
        let workshop = Workshop()
        workshop.making = { end(in: .make) }
        pool = workshop.pool(
            PoolLimits(makeTimeout: nil, checkTimeout: nil), check: { _ in end(in: .check) })
        if start == .check { try hang(pool!.with { _ in Promise.value }) }
        let request = pool!.with { _ in end(in: .body) }
        net.settle(.seconds(1))
        expect(request.isRejected && stops == 1, "\(stops)")
        workshop.expectAllClosed()
        withExtendedLifetime(resolver) {}
    }
}
