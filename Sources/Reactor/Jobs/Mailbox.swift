import Synchronization

/// Where other threads leave jobs for a loop: a stack of the jobs themselves, which the loop takes whole and
/// turns round.
///
/// One word tells everything: empty, parked (the loop sleeps or is about to), closed, or the newest job. Who
/// replaces "parked" wakes the loop; everybody after that finds a job there and stays silent. So a burst costs one
/// eventfd write for each time the loop went to sleep, not one a job.
@usableFromInline
package struct Mailbox: ~Copyable {
    // 0, the two marks below, or the address of the newest job (jobs are 16-byte aligned, so neither mark is one).
    // The mailbox owns its jobs (+1 each); their `next` links are written before the releasing CAS and read after
    // the acquiring exchange, so they need no atomics of their own.
    @usableFromInline let word = Atomic<UInt>(0)
    private static var parked: UInt { 1 }
    @usableFromInline static var closed: UInt { 2 }

    package enum Receipt { case delivered, deliveredToSleeper, refused }

    package init() {}

    /// Any thread. Takes over the caller's reference unless it answers `refused`.
    package func post(_ job: Unmanaged<Job>) -> Receipt {
        let address = UInt(bitPattern: job.toOpaque())
        var seen = word.load(ordering: .relaxed)
        while true {
            if seen == Self.closed { return .refused }
            let below: Unmanaged<Job>? = seen <= Self.closed ? nil : Self.job(at: seen)
            job._withUnsafeGuaranteedRef { $0.next = below }
            let (done, now) = word.weakCompareExchange(
                expected: seen, desired: address, successOrdering: .acquiringAndReleasing, failureOrdering: .relaxed)
            if done { return seen == Self.parked ? .deliveredToSleeper : .delivered }
            seen = now
        }
    }

    /// The loop's thread. One relaxed load.
    @inlinable
    package var isEmpty: Bool { word.load(ordering: .relaxed) <= Self.closed }

    /// The loop's thread: how many jobs have come. They are counted one by one, and stay, since nobody else takes them.
    var count: Int {
        let newest = word.load(ordering: .acquiring)
        return newest <= Self.closed ? 0 : Job.count(from: Self.job(at: newest))
    }

    /// The loop's thread: moves what has come, oldest first, to the end of `queue`.
    @usableFromInline
    package func take(into queue: inout ReadyQueue) {
        guard !isEmpty else { return }
        Self.append(word.exchange(0, ordering: .acquiring), to: &queue)
    }

    /// The loop's thread, before it sleeps. False if there is mail: take it instead.
    package func park() -> Bool {
        word.compareExchange(expected: 0, desired: Self.parked, ordering: .acquiringAndReleasing).exchanged
    }

    /// The loop's thread, after it slept. True if no other thread is to write the eventfd.
    package func unpark() -> Bool {
        // Mostly mail has ended the sleep, and then nothing is left to change.
        word.load(ordering: .relaxed) == Self.parked
            && word.compareExchange(expected: Self.parked, desired: 0, ordering: .acquiringAndReleasing).exchanged
    }

    /// The loop's thread, at its end: moves what has come to `queue`; everything later is refused.
    package func close(into queue: inout ReadyQueue) {
        let last = word.exchange(Self.closed, ordering: .acquiringAndReleasing)
        if last > Self.closed { Self.append(last, to: &queue) }
    }

    private static func append(_ newest: UInt, to queue: inout ReadyQueue) {
        var oldest = Job.reversed(job(at: newest))
        while let job = oldest {
            oldest = job._withUnsafeGuaranteedRef { $0.next }
            queue.append(job)
        }
    }

    private static func job(at address: UInt) -> Unmanaged<Job> {
        Unmanaged.fromOpaque(UnsafeRawPointer(bitPattern: address)!)
    }
}
