@testable import Reactor

/// The poller's table of descriptors, which grows by zeroed memory.
struct PollerTableTests {
    @Test func whatASlotHoldsIsIndependentOfTheRest() {
        var slot = Poller.Slot(generation: 7)
        slot.isReferenced = false
        expect(slot.registered == 0 && slot.isRegistered(for: 0) && !slot.isRegistered(for: 1))
        slot.registered = Interest([.reading, .peerGone]).rawValue
        slot.wanted = Interest.peerGone.rawValue
        expect(!slot.isReferenced && slot.registered == 0x2019 && slot.wanted == 0x2018 && slot.generation == 7)
        expect(slot.isRegistered(for: 0x2018) && !slot.isRegistered(for: Interest.writing.rawValue))
        slot.isReferenced = true
        expect(slot.isReferenced && slot.registered == 0x2019)
        slot.isReferenced = false
        slot.registered = 0
        expect(!slot.isReferenced && slot.registered == 0)
        expectEqual(MemoryLayout<Poller.Slot>.stride, 24)
    }

    @Test(.inRealTime) func watchesStayWhenTheTableGrows() throws {
        let loop = EventLoop.current
        let pipe = Ends.pipe()
        var reads = 0
        let watch = try loop.watch(pipe.near, for: .reading) { _ in
            take(1, from: pipe.near)
            reads += 1
        }
        watch.unref()
        // The table then ends after a number far above the others.
        let high = fcntl(pipe.near, F_DUPFD_CLOEXEC, 600)
        try #require(high >= 600)
        defer { close(high) }
        let other = try loop.watch(high, for: .reading) { _ in }
        expectEqual(loop.keepAliveReport.descriptors.map(\.number), [pipe.near, high])
        expectEqual(loop.keepAliveReport.descriptors.map(\.isReferenced), [false, true])
        other.cancel()
        put(1, into: pipe.far)
        try loop.turn(.poll)
        expectEqual(reads, 1)
        watch.cancel()
    }
}
