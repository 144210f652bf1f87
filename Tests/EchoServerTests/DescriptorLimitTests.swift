import Synchronization

@testable import PromisesTestSupport
@testable import ReactorIOTestSupport
@testable import echo_server

struct DescriptorLimitTests {
    @Test func enoughForAll() throws {
        let limit = DescriptorLimit(initial: 1024, current: 20_000)
        let share = try limit.share(of: 10_000, listeners: 1, others: 27)
        expectEqual(share, .init(maxConnections: 10_000, maxLingering: 1024))
        let ofTwo = try limit.share(of: 10, listeners: 2, others: 27)
        expectEqual(ofTwo, .init(maxConnections: 10, maxLingering: 64))
        let endless = DescriptorLimit(initial: .max, current: .max)
        let ofEndless = try endless.share(of: 10_000, listeners: 1, others: 27)
        expectEqual(ofEndless.maxConnections, 10_000)
        let scarce = DescriptorLimit(initial: 200, current: 200)
        expect(try scarce.share(of: 106, listeners: 1, others: 27).maxConnections < 106 + 64)
        expectEqual(try scarce.share(of: 85, listeners: 1, others: 27), .init(maxConnections: 85, maxLingering: 85))
    }

    @Test(arguments: [31, 32, 40, 100, 1024, 4096], [1, 2]) func tooLowForAll(current: Int, listeners: Int) throws {
        let share = try DescriptorLimit(initial: current, current: current)
            .share(of: 10_000, listeners: listeners, others: 27)
        expect(share.maxConnections >= 1 && share.maxConnections < 10_000)
        let needed = 30 + listeners * (share.maxConnections + share.maxLingering)
        expect(needed <= max(current, 30 + listeners))
    }

    @Test(arguments: [(27, 31), (26, 30), (0, 4)]) func tooLowForAClient(others: Int, needed: Int) throws {
        let limit = DescriptorLimit(initial: 3, current: needed - 1)
        let error = #expect(throws: DescriptorLimit.TooLow.self) {
            try limit.share(of: 10, listeners: 1, others: others)
        }
        expectEqual(error?.needed, needed)
        let share = try limit.share(of: 10, listeners: 1, others: others, spare: 1)
        expectEqual(share, .init(maxConnections: 1, maxLingering: 0))
    }

    /// Each time half of many connections have ended, and never for a few.
    @Test func freedMemoryGoesBackWhenHalfOfTheConnectionsHaveGone() {
        let trims = Mutex(0)
        let count = OpenCount { trims.withLock { $0 += 1 } }
        for _ in 0..<1024 { count.begin() }
        for _ in 0..<511 { count.end() }
        expectEqual(trims.withLock { $0 }, 0)
        count.end()
        expectEqual(trims.withLock { $0 }, 1)
        for _ in 0..<512 { count.end() }
        expectEqual(trims.withLock { $0 }, 3)
        for _ in 0..<255 { count.begin() }
        for _ in 0..<255 { count.end() }
        expectEqual(trims.withLock { $0 }, 3)
        expectEqual(count.peak, 1024)
    }
}
