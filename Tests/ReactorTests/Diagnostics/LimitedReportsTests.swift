@testable import Reactor

struct LimitedReportsTests {
    private let limit = ReportLimit(burst: 2, period: 100)

    @Test func aBurstPassesAndTheNextPeriodTellsOfTheRest() {
        var counts = ReportCounts<String>()
        let passes = (0..<5).map { counts.admit("a", limit, now: Int64($0)).passes }
        expectEqual(passes, [true, true, false, false, false])
        expectEqual(counts.nextEnd(limit), 100)
        let next = counts.admit("a", limit, now: 100)
        expect(next.passes && next.suppressedBefore == 3)
        expectEqual(counts.nextEnd(limit), nil)
    }

    @Test func eachIsReportedOnceAndNotBeforeItsPeriodIsOver() {
        var counts = ReportCounts<String>()
        for _ in 0..<3 { _ = counts.admit("a", limit, now: 0) }
        for _ in 0..<4 { _ = counts.admit("b", limit, now: 50) }
        expect(counts.takeSuppressed(limit, now: 99).isEmpty)
        let first = counts.takeSuppressed(limit, now: 100)
        expect(first.map(\.key) == ["a"] && first.map(\.count) == [1])
        let rest = counts.takeSuppressed(limit, now: nil)
        expect(rest.map(\.key) == ["b"] && rest.map(\.count) == [2])
        expect(counts.takeSuppressed(limit, now: nil).isEmpty)
    }

    @Test func theCountOfAllOtherKeysIsNotReportedAsThatOfOne() {
        var counts = ReportCounts<Int>()
        for key in 0..<1024 { for _ in 0..<3 { _ = counts.admit(key, limit, now: 0) } }
        for key in 1024..<1034 { _ = counts.admit(key, limit, now: 0) }
        let late = counts.admit(2000, limit, now: 100)
        expect(late.passes && late.suppressedBefore == 8 && late.place == nil)
        let own = counts.admit(7, limit, now: 100)
        expect(own.passes && own.suppressedBefore == 1 && own.place == 7)
    }

    @Test func keysWithoutEndShareACountAndTakeNoMemory() {
        var counts = ReportCounts<Int>()
        var passed = 0
        for key in 0..<100_000 where counts.admit(key, limit, now: 0).passes { passed += 1 }
        expectEqual(passed, 1024 + 2)
        let suppressed = counts.takeSuppressed(limit, now: nil)
        expect(suppressed.map(\.key) == [nil] && suppressed.map(\.count) == [100_000 - passed])
        // Those whose period has ended make room.
        expect(counts.admit(-1, limit, now: 1000).passes)
        for _ in 0..<2 { _ = counts.admit(-1, limit, now: 1000) }
        expectEqual(counts.takeSuppressed(limit, now: nil).map(\.key), [-1])
    }

    @Test func aFloodOfOneKindSuppressesNoOther() {
        let error = SystemError(.epollControl, ENOSPC)
        let events: [LoopEvent] = [
            .undelivered(1), .leftHandlers(1, nil), .taskOnEndedLoop, .loopFailed("loop", error), .watchPaused(error),
            .staleWatch(7, nil),
        ]
        expectEqual(Set(events.map(\.key)).count, events.count)
    }
}
