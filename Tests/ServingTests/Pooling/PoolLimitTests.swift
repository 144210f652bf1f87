@testable import PromisesTestSupport

/// The limits of a pool over all addresses and over time, and its counts for each address.
struct PoolLimitTests {
    @Test(.network(.virtual)) func aBusyAddressDoesNotStarveAnother() throws {
        let (one, two) = (try LineServer(net), try LineServer(net))
        let pool = Pool<Connection>(limits: PoolLimits(perKey: 2, total: 2))
        var order: [String] = []
        func ask(_ text: String, _ server: LineServer) -> Promise<Void> {
            pool.ask(text, server.address).done { order.append($0) }
        }
        let texts = (0..<6).map { "a\($0)" }
        var requests = texts.prefix(4).map { ask($0, one) }
        requests.append(ask("b", two))
        requests += texts.suffix(2).map { ask($0, one) }
        expectEqual(pool.counts.all, [2, 0, 0, 7])
        let counts = pool.countsByKey.mapValues(\.all)
        expectEqual(counts, [.address(one.address): [2, 0, 0, 6], .address(two.address): [0, 0, 0, 1]])
        try hang(when(fulfilled: requests))
        expect(order.firstIndex(of: "b")! < order.firstIndex(of: "a5")!)
        expect(pool.counts.open <= 2 && one.accepted.count + two.accepted.count <= 4)
        pool.close()
        expect(pool.countsByKey.isEmpty)
        for server in [one, two] { server.end() }
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
