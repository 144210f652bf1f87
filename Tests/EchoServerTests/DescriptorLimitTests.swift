import Synchronization
import Testing

@testable import echo_server

@Suite struct DescriptorLimitTests {
    @Test func enoughForAll() {
        let limit = DescriptorLimit(initial: 1024, current: 20_000)
        #expect(limit.share(of: 10_000, listeners: 1, others: 30) == .init(maxConnections: 10_000, maxLingering: 1024))
        #expect(limit.share(of: 10, listeners: 2, others: 30) == .init(maxConnections: 10, maxLingering: 64))
        let endless = DescriptorLimit(initial: .max, current: .max)
        #expect(endless.share(of: 10_000, listeners: 1, others: 30).maxConnections == 10_000)
    }

    @Test(arguments: [1, 2, 24, 100, 1024, 4096], [1, 2]) func tooLowForAll(current: Int, listeners: Int) {
        let share = DescriptorLimit(initial: current, current: current)
            .share(of: 10_000, listeners: listeners, others: 30)
        #expect(share.maxConnections >= 1 && share.maxConnections < 10_000)
        let needed = 30 + listeners * (share.maxConnections + share.maxLingering)
        #expect(needed <= max(current, 30 + listeners))
    }

    @Test func justEnough() {
        let limit = DescriptorLimit(initial: 200, current: 200)
        #expect(limit.share(of: 106, listeners: 1, others: 30).maxConnections < 106 + 64)
        #expect(limit.share(of: 85, listeners: 1, others: 30) == .init(maxConnections: 85, maxLingering: 85))
    }

    /// Each time that half of many connections have gone, and never for a few.
    @Test func freedMemoryGoesBackWhenHalfOfTheConnectionsHaveGone() {
        let trims = Mutex(0)
        let count = OpenCount { trims.withLock { $0 += 1 } }
        for _ in 0..<1024 { count.begin() }
        for _ in 0..<511 { count.end() }
        #expect(trims.withLock { $0 } == 0)
        count.end()
        #expect(trims.withLock { $0 } == 1)
        for _ in 0..<512 { count.end() }
        #expect(trims.withLock { $0 } == 3)
        for _ in 0..<255 { count.begin() }
        for _ in 0..<255 { count.end() }
        #expect(trims.withLock { $0 } == 3)
        #expect(count.peak == 1024)
    }
}
