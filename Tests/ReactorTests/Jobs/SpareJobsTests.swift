@testable import Reactor

/// The jobs that a loop keeps for reuse.
struct SpareJobsTests {
    private final class Spare: Job {
        let token: Tally.Token
        init(_ tally: Tally) {
            token = tally.token()
            super.init()
        }
    }

    private let tally = Tally()

    /// Keeps as many new jobs as there is room for, at most `count`.
    private func fill(_ spare: inout SpareJobs, _ count: Int) -> [Unmanaged<Job>] {
        var kept: [Unmanaged<Job>] = []
        for _ in 0..<count {
            let job = Unmanaged<Job>.passRetained(Spare(tally))
            if spare.keep(job) { kept.append(job) } else { job.release() }
        }
        return kept
    }

    @Test func keepsItsCapacityGivesTheNewestFirstAndReleasesTheRestAtTheEnd() {
        // Under a sanitizer it keeps nothing.
        let capacity = isSanitized ? 0 : SpareJobs.capacity
        var spare = SpareJobs()
        let kept = fill(&spare, SpareJobs.capacity + 10)
        expect(kept.count == capacity && tally.alive == capacity)
        for job in kept.reversed() {
            let taken = spare.take()
            expectEqual(taken?.toOpaque(), job.toOpaque())
            expect(taken?.takeUnretainedValue().next == nil)
            taken?.release()
        }
        expect(spare.take() == nil && tally.alive == 0)
        // The room of the taken ones can be reused.
        expectEqual(fill(&spare, SpareJobs.capacity).count, capacity)
        spare.take()?.release()
        spare.close()
        expectEqual(tally.alive, 0)
        expect(fill(&spare, 1).isEmpty && spare.take() == nil)
    }
}
