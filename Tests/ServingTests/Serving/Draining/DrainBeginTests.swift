@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

struct DrainBeginTests {
    /// A handler is called while the backlog is accepted too, which a drain does first.
    @Test(.listener(.virtual), arguments: [false, true]) func aHandlerDrainsItsOwnListener(fromTheBacklog: Bool) throws
    {
        var drains: [Guarantee<DrainResult>] = []
        let served = listener.serve { connection -> Promise<Void> in
            drains.append(listener.drain(deadline: .seconds(2)))
            return echo(connection)
        }
        let clients = try (0..<3).map { _ in try Peer(to: listener.localAddress) }
        if fromTheBacklog {
            drains.append(listener.drain(deadline: .seconds(3600)))
        } else {
            try net.loop.run(until: { !drains.isEmpty })
        }
        let count = 3
        expectEqual(drains.count, fromTheBacklog ? 4 : 3)
        expectEqual(listener.activeConnections, count)
        hang(after(.milliseconds(220)))
        for client in clients { client.close() }
        for drain in drains { expectEqual(try hang(drain, timeout: .seconds(60)).idle, count) }
        expectEqual(try hang(served, timeout: .seconds(60)).idle, count)
        expectEqual(net.loop.nextDeadline, nil)
    }

    /// What a handler's promise has captured is released when that has settled; what `serve` has, after the last connection.
    @Test(.listener(.virtual), arguments: [false, true]) func aDeinitDrains(afterTheLastConnection: Bool) throws {
        var result: DrainResult?
        let drain: () -> Void = { [unowned listener = listener] in
            listener.drain(deadline: .seconds(1)).done { result = $0 }
        }
        let served: Promise<DrainResult>
        if afterTheLastConnection {
            let drainer = LastWords(drain)
            served = listener.serve { connection in connection.receive().asVoid().ensure { drainer.use() } }
        } else {
            served = listener.serve { connection in
                let drainer = LastWords(drain)
                return connection.receive().asVoid().ensure { drainer.use() }
            }
        }
        let client = try Peer(to: listener.localAddress)
        try net.loop.run(until: { listener.activeConnections == 1 })
        if afterTheLastConnection { listener.close() }
        client.close()
        let end = try hang(served, timeout: .seconds(60))
        expect(listener.isDraining)
        expectEqual(end, result)
        expectEqual(result?.aborted, 0)
        expectEqual(net.loop.nextDeadline, nil)
    }

    /// Clients of the backlog are served up to the limit; those beyond are reset, and do not hold up the drain.
    @Test(.listener(.virtual), arguments: [1, 2]) func atTheLimitOfConnections(limit: Int) throws {
        let served = listener.serve(ServeOptions(maxConnections: limit)) { echo($0) }
        let clients = try (0..<4).map { _ in try Peer(to: listener.localAddress) }
        try net.loop.run(until: { listener.activeConnections == limit })
        let drained = listener.drain(deadline: .seconds(10))
        net.settle(.milliseconds(220))
        for client in clients { client.close() }
        expectEqual(try hang(drained, timeout: .seconds(60)).idle, limit)
        try hang(served, timeout: .seconds(60))
        expectEqual(net.ledger.accepted.count, limit)
        expectEqual(net.loop.nextDeadline, nil)
    }

    /// A connection whose close lingers when the drain begins has finished; the deadline cuts its close short.
    @Test(.listener(.virtual)) func duringALingeringClose() throws {
        let served = listener.serve { connection in connection.write("bye") }
        let client = try Peer(to: listener.localAddress)
        try net.loop.run(until: { listener.lingeringConnections == 1 })
        let begin = net.loop.now
        let result = try hang(listener.drain(deadline: .seconds(1)), timeout: .seconds(60))
        expect((result.idle, result.finished, result.aborted) == (0, 1, 0))
        expectEqual(begin.duration(to: net.loop.now), .seconds(1))
        expectEqual(try client.readToEnd(), Array("bye".utf8))
        try hang(served, timeout: .seconds(60))
    }

    /// What the kernel has taken by then has finished, though no sweep has seen it.
    @Test(.listener(.virtual)) func anEndAtOnceAfterADelivery() throws {
        let (work, resolver) = Promise<Void>.pending()
        let served = listener.serve { _ in work }
        let client = try Peer(to: listener.localAddress)
        try net.loop.run(until: { listener.activeConnections == 1 })
        let drained = listener.drain(deadline: .seconds(10))
        resolver.fulfill()
        try net.loop.run(until: { listener.lingeringConnections == 1 })
        listener.abortDrain()
        let result = try hang(drained, timeout: .seconds(60))
        expect((result.idle, result.finished, result.aborted) == (0, 1, 0))
        expectEqual(try client.readToEnd(), [])
        try hang(served, timeout: .seconds(60))
        client.close()
    }

    /// Twice, or after the end: the connections that are left end, and the account stands.
    @Test(.listener(.virtual)) func anEndAtOnceTwice() throws {
        let served = listener.serve(handler: serveByFirstByte)
        listener.abortDrain()
        expect(!listener.isDraining)
        let clients = try net.connectClients("ss", to: listener)
        let drained = listener.drain(deadline: .seconds(10))
        listener.abortDrain()
        listener.abortDrain()
        expectEqual(try hang(drained, timeout: .seconds(60)).aborted, 2)
        try hang(served, timeout: .seconds(60))
        listener.abortDrain()
        expectEqual(listener.drain(deadline: .zero).settledValue?.aborted, 2)
        for client in clients { expectEqual(client.failureOfReading(), ECONNRESET) }
    }
}
