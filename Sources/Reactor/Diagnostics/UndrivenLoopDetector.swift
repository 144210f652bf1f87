import Synchronization

/// What is known of a thread that may never drive its loop.
package final class UndrivenLoopDetector: Sendable {
    let isMain: Bool
    /// Whether its thread is a `ThreadPool`'s.
    let isOfPool: Bool
    let number: Int
    /// How often it has been driven since something was noted.
    private let generation = Atomic<Int>(0)
    private let hasNotes = Atomic(false)
    /// Whether a task looks after it.
    private let isWatched = Atomic(false)
    /// Places without a job that says whether it still waits.
    private let standing = LockedValue<Set<CallSite>>([])

    private static let numbers = Atomic<Int>(0)

    /// How long a task may leave its thread's loop alone before that is reported. A synchronous test attaches its handlers and
    /// hangs a moment later, on a thread of Swift's pool too.
    package static let patience = Atomic<Int64>(1_000_000_000)

    /// Those that have been reported: once each.
    private static let reported = LockedValue<Set<CallSite>>([])

    init(isMain: Bool, isOfPool: Bool) {
        self.isMain = isMain
        self.isOfPool = isOfPool
        number = Self.numbers.add(1, ordering: .relaxed).newValue
    }

    /// What has been begun since the loop was driven last, and still waits.
    var places: [CallSite] {
        guard hasNotes.load(ordering: .acquiring) else { return [] }
        let waiting = UndrivenWork.places(ofThread: number, generation: generation.load(ordering: .relaxed))
        return waiting + standing.withLock { $0.subtracting(waiting) }
    }

    func note(_ origin: CallSite) {
        standing.withLock { _ = $0.insert(origin) }
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
        // A thread of Swift's pool may live on forever, so its end is not waited for.
        Task.detached { await self.watch(since: generation) }
    }

    /// Reports what is left alone for as long as the patience lasts.
    private func watch(since generation: Int) async {
        var generation = generation
        while true {
            try? await Task.sleep(for: .nanoseconds(Self.patience.load(ordering: .relaxed)))
            let now = self.generation.load(ordering: .relaxed)
            if hasNotes.load(ordering: .acquiring) && now != generation {
                // Driven meanwhile, and more has been begun since.
                generation = now
                continue
            }
            // What is noted from here on has a task of its own.
            isWatched.store(false, ordering: .releasing)
            return reportAll()
        }
    }

    /// The loop is driven. On its thread.
    func forgetPlaces() {
        guard hasNotes.exchange(false, ordering: .acquiringAndReleasing) else { return }
        generation.add(1, ordering: .relaxed)
        standing.withLock { $0 = [] }
    }

    func reportAll() { for place in places { Self.report(place) } }

    static func report(_ origin: CallSite) {
        if reported.withLock({ $0.insert(origin).inserted }) { LoopEvent.send(.undriven(origin)) }
    }
}
