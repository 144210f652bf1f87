import Glibc

/// The work that has begun on threads whose loop may never be driven, by the address of its job, until the job ends.
///
/// A job that is found here may be read under the lock of its shard, since it removes itself before it is
/// deinitialized. No reference is therefore taken, and no object ends on another thread than it would otherwise. No
/// foreign code runs under the lock.
enum UndrivenWork {
    private struct Entry {
        /// The number of the `UndrivenLoopDetector` of the thread, and its generation.
        let thread: Int
        let generation: Int
        let origin: CallSite
    }

    /// Several dictionaries with a lock each, so that threads that attach many handlers seldom wait for one another.
    private static let shards = (0..<16).map { _ in LockedValue<[UnsafeMutableRawPointer: Entry]>([:]) }

    private static func shard(of job: UnsafeMutableRawPointer) -> LockedValue<[UnsafeMutableRawPointer: Entry]> {
        // The lowest bits of addresses are all equal.
        let address = UInt(bitPattern: job)
        return shards[Int((address >> 4 ^ address >> 9) & 15)]
    }

    private static func address(_ job: Job) -> UnsafeMutableRawPointer { Unmanaged.passUnretained(job).toOpaque() }

    static func insert(_ job: Job, _ origin: CallSite, thread: Int, generation: Int) {
        let entry = Entry(thread: thread, generation: generation, origin: origin)
        let job = address(job)
        shard(of: job).withLock { $0[job] = entry }
    }

    static func remove(_ job: Job) {
        let job = address(job)
        shard(of: job).withLock { _ = $0.removeValue(forKey: job) }
    }

    /// The call sites of work on a thread that has begun since its loop was last driven and that still waits, each call
    /// site once, in the order of file and line.
    static func places(ofThread thread: Int, generation: Int) -> [CallSite] {
        var places: Set<CallSite> = []
        for shard in shards {
            shard.withLock { entries in
                for (job, entry) in entries where entry.thread == thread && entry.generation == generation {
                    if places.contains(entry.origin) { continue }
                    let isPending = Unmanaged<Job>.fromOpaque(job)._withUnsafeGuaranteedRef { $0.isStillWaiting }
                    if isPending { places.insert(entry.origin) }
                }
            }
        }
        return places.sorted { ($0.file, $0.line) < ($1.file, $1.line) }
    }
}

extension Job {
    /// Called before the job, which `EventLoop.note` has noted, is deinitialized.
    package func leaveUndrivenWork() { UndrivenWork.remove(self) }
}
