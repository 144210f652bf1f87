import Synchronization

/// The mailbox of a loop, to which other threads post jobs: a stack of the jobs themselves, which the loop takes as a
/// whole and reverses.
///
/// One word holds the whole state: empty, parked (the loop sleeps or is about to), closed, or the newest job. The
/// thread that replaces "parked" wakes the loop. Threads that post after it find a job there and need not wake the
/// loop. A burst of jobs therefore costs one eventfd write each time the loop went to sleep, not one per job.
@usableFromInline
package struct Mailbox: ~Copyable {
    // 0, the two marks below, or the address of the newest job (jobs are 16-byte aligned, so neither mark is one). The
    // mailbox owns its jobs (+1 each); their `next` links are written before the releasing CAS and read after the
    // acquiring exchange, so they need not be atomic.
    @usableFromInline let word = Atomic<UInt>(0)
    private static var parked: UInt { 1 }
    @usableFromInline static var closed: UInt { 2 }

    package enum Receipt { case delivered, deliveredToSleeper, refused }

    package init() {}

    /// Any thread: posts a job. Takes over the caller's reference unless it returns `refused`.
    package func post(_ job: Unmanaged<Job>) -> Receipt {
        let address = UInt(bitPattern: job.toOpaque())
        var seen = word.load(ordering: .relaxed)
        while true {
            if seen == Self.closed {
                // What the loop has written before it closed the mailbox is visible to the refused thread.
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

    /// The loop's thread: whether there are no jobs. One relaxed load.
    @inlinable
    package var isEmpty: Bool { word.load(ordering: .relaxed) <= Self.closed }

    /// The loop's thread: the number of jobs. Counts them one by one; they stay meanwhile, since no other thread takes
    /// them.
    var count: Int { count(atMost: .max) }

    func count(atMost most: Int) -> Int {
        let newest = word.load(ordering: .acquiring)
        return newest <= Self.closed ? 0 : Job.count(from: Self.job(at: newest), atMost: most)
    }

    /// The loop's thread: moves the jobs, oldest first, to the end of `queue`.
    @usableFromInline
    package func take(into queue: inout JobQueue) {
        guard !isEmpty else { return }
        Self.append(word.exchange(0, ordering: .acquiring), to: &queue)
    }

    /// The loop's thread, before it sleeps: parks the mailbox. Returns false if there is mail, which the loop must take
    /// instead.
    package func park() -> Bool {
        word.compareExchange(expected: 0, desired: Self.parked, ordering: .acquiringAndReleasing).exchanged
    }

    /// The loop's thread, after it slept. Returns true if no other thread will write the eventfd.
    package func unpark() -> Bool {
        // In most cases mail has ended the sleep, and nothing is left to change.
        word.load(ordering: .relaxed) == Self.parked
            && word.compareExchange(expected: Self.parked, desired: 0, ordering: .acquiringAndReleasing).exchanged
    }

    /// The loop's thread, at its end: moves the jobs to `queue`. Later jobs are refused.
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
