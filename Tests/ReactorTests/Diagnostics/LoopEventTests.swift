@testable import Reactor

struct LoopEventTests {
    @Test func aFloodOfOneKindSuppressesNoOther() {
        let error = SystemError(.epollControl, ENOSPC)
        let events: [LoopEvent] = [
            .undelivered(1), .leftHandlers(1, nil), .taskOnEndedLoop, .loopFailed("loop", error), .watchPaused(error),
            .staleWatch(7, nil),
        ]
        expectEqual(Set(events.map(\.key)).count, events.count)
    }
}
