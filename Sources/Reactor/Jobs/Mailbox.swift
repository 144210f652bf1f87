import Synchronization

/// A loop's mailbox for jobs from other threads. It is a stack linked through the jobs; the loop takes all and reverses
/// them.
///
/// One word holds the state: empty, parked (the loop sleeps or is about to), closed, or the newest job. The thread that
/// replaces "parked" wakes the loop. Later threads find a job and do not wake it, so a burst costs one eventfd write.
@usableFromInline
package struct Mailbox: ~Copyable {
    // 0, a mark below, or the newest job's address, which is 16-byte aligned and so never a mark. The mailbox owns its
    // jobs (+1 each). Their `next` links are written before the releasing CAS and read after the acquiring exchange.
    @usableFromInline let word = Atomic<UInt>(0)
    private static var parked: UInt { 1 }
    @usableFromInline static var closed: UInt { 2 }

    package enum Receipt { case delivered, deliveredToSleeper, refused }

    package init() {}

    /// Posts a job, taking over the caller's reference unless it returns `refused`. Any thread.
    package func post(_ job: Unmanaged<Job>) -> Receipt {
        let address = UInt(bitPattern: job.toOpaque())
        var seen = word.load(ordering: .relaxed)
        while true {
            if seen == Self.closed {
                // Lets the refused thread see the loop's earlier writes.
                atomicMemoryFence(ordering: .acquiring)
                return .refused
            }
            let below: Unmanaged<Job>? = seen <= Self.closed ? nil : Self.job(at: seen)
            job._withUnsafeGuaranteedRef { $0.next = below }
            let (done, now) = word.weakCompareExchange(
                expected: seen, desired: address, successOrdering: .acquiringAndReleasing, failureOrdering: .relaxed)
            if done { return seen == Self.parked ? .deliveredToSleeper : .delivered }
            seen = now
        }
    }

    /// True when there are no jobs. One relaxed load. On the loop's thread.
    @inlinable
    package var isEmpty: Bool { word.load(ordering: .relaxed) <= Self.closed }

    /// Counted one by one. On the loop's thread, since only it removes jobs.
    var count: Int { count(atMost: .max) }

    func count(atMost most: Int) -> Int {
        let newest = word.load(ordering: .acquiring)
        return newest <= Self.closed ? 0 : Job.count(from: Self.job(at: newest), atMost: most)
    }

    /// Moves the jobs to the end of `queue`, oldest first. On the loop's thread.
    @usableFromInline
    package func take(into queue: inout JobQueue) {
        guard !isEmpty else { return }
        Self.append(word.exchange(0, ordering: .acquiring), to: &queue)
    }

    /// Parks the mailbox. Returns false if there are jobs to take instead. On the loop's thread, before it sleeps.
    package func park() -> Bool {
        word.compareExchange(expected: 0, desired: Self.parked, ordering: .acquiringAndReleasing).exchanged
    }

    /// Returns true if no other thread will write the eventfd. On the loop's thread, after it has slept.
    package func unpark() -> Bool {
        // Usually a job ended the sleep, and nothing changes.
        word.load(ordering: .relaxed) == Self.parked
            && word.compareExchange(expected: Self.parked, desired: 0, ordering: .acquiringAndReleasing).exchanged
    }

    /// Moves the jobs to `queue`, and refuses later ones. On the loop's thread, when the loop ends.
    package func close(into queue: inout JobQueue) {
        let last = word.exchange(Self.closed, ordering: .acquiringAndReleasing)
        if last > Self.closed { Self.append(last, to: &queue) }
    }

    private static func append(_ newest: UInt, to queue: inout JobQueue) {
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
