@testable import PromisesTestSupport

struct PoolConnectTests {
    @Test(.network(.virtual)) func aServerThatRecoversServesTheRestOfTheLine() throws {
        let pool = Pool<Connection>(limits: PoolLimits(perKey: 1))
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

    @Test(.network(.virtual)) func aTextThatIsNoAddressIsRefusedByEachRequest() throws {
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
