import Synchronization

/// The notes about a thread that may never drive its loop.
package final class UndrivenLoopDetector: Sendable {
    let isMain: Bool
    /// Whether the thread belongs to a `ThreadPool`.
    let isOfPool: Bool
    let number: Int
    /// The number of times the loop has been driven since something was noted.
    private let generation = Atomic<Int>(0)
    private let hasNotes = Atomic(false)
    /// Whether a task watches this thread.
    private let isWatched = Atomic(false)
    /// Call sites without a job that says whether it still waits.
    private let standing = LockedValue(Sites())

    private static let numbers = Atomic<Int>(0)

    /// The time for which a task may leave its thread's loop undriven before that is reported, in nanoseconds. A
    /// synchronous test attaches its handlers and hangs a moment later, also on a thread of Swift's pool.
    package static let gracePeriod = Atomic<Int64>(1_000_000_000)

    /// The call sites that have been reported, once each.
    private static let reported = LockedValue(Sites())

    /// Not a bare set: to make the type of a lock around one, the runtime would search all conformances of the process,
    /// which is a twentieth of the start of a small program.
    private struct Sites {
        var all: Set<CallSite> = []
    }

    init(isMain: Bool, isOfPool: Bool) {
        self.isMain = isMain
        self.isOfPool = isOfPool
        number = Self.numbers.add(1, ordering: .relaxed).newValue
    }

    /// The call sites of work that has begun since the loop was last driven, and that still waits.
    var places: [CallSite] {
        guard hasNotes.load(ordering: .acquiring) else { return [] }
        let waiting = UndrivenWork.places(ofThread: number, generation: generation.load(ordering: .relaxed))
        return waiting + standing.withLock { $0.all.subtracting(waiting) }
    }

    func note(_ origin: CallSite) {
        standing.withLock { _ = $0.all.insert(origin) }
        noted()
    }

    func note(_ job: Job, _ origin: CallSite) {
        UndrivenWork.insert(job, origin, thread: number, generation: generation.load(ordering: .relaxed))
        noted()
    }

    private func noted() {
        hasNotes.store(true, ordering: .releasing)
        guard !isWatched.load(ordering: .relaxed), withUnsafeCurrentTask(body: { $0 != nil }) else { return }
        guard !isWatched.exchange(true, ordering: .acquiringAndReleasing) else { return }
        let generation = generation.load(ordering: .relaxed)
        // A thread of Swift's pool may live forever, so the detector does not wait for its end.
        Task.detached { await self.watch(since: generation) }
    }

    /// Reports work that has not been driven within the grace period.
    private func watch(since generation: Int) async {
        var generation = generation
        while true {
            try? await Task.sleep(for: .nanoseconds(Self.gracePeriod.load(ordering: .relaxed)))
            let now = self.generation.load(ordering: .relaxed)
            if hasNotes.load(ordering: .acquiring) && now != generation {
                // The loop was driven meanwhile, and more work has begun since.
                generation = now
                continue
            }
            // Work that is noted from here on gets a new task.
            isWatched.store(false, ordering: .releasing)
            return reportAll()
        }
    }

    /// Called on the loop's thread when the loop is driven.
    func forgetPlaces() {
        guard hasNotes.exchange(false, ordering: .acquiringAndReleasing) else { return }
        generation.add(1, ordering: .relaxed)
        standing.withLock { $0.all = [] }
    }

    func reportAll() { for place in places { Self.report(place) } }

    static func report(_ origin: CallSite) {
        if reported.withLock({ $0.all.insert(origin).inserted }) { LoopEvent.send(.undriven(origin)) }
    }
}
