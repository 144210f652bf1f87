import ReactorLibc
import Synchronization

/// Observes a thread that may never drive its loop, and reports work that never runs there: handlers that a synchronous
/// function attached, called by an async one on a thread of Swift's pool; or on a thread of Dispatch's; or on a thread
/// that ends.
///
/// Whether a thread drives its loop becomes clear only afterwards. Work that begins there outside a turn is therefore
/// noted, and forgotten when the loop is driven. Work that has ended before a report is not part of the report.
///
/// Operators note their work in the code for tracing, so others pay nothing; on such a thread this costs a call per
/// operator. A thread of the program's own stops paying when it drives its loop for the first time: from then on it is
/// assumed to continue. A thread of Swift's pool or of a `ThreadPool` continues to pay: it runs code of different
/// origins, one after the other.
package final class UnrunWork: Sendable {
    let isMain: Bool
    /// Whether the thread belongs to a `ThreadPool`, which is checked at the end of each job.
    let isOfPool: Bool
    private let number: Int
    /// How often the loop has been driven since something was noted.
    private let generation = Atomic<Int>(0)
    private let hasNotes = Atomic(false)
    /// Whether a task watches this thread.
    private let isWatched = Atomic(false)

    /// The time for which a task may not drive its thread's loop before that is reported, in nanoseconds. A
    /// synchronous test attaches its handlers and hangs a moment later, also on a thread of Swift's pool.
    package static let gracePeriod = Atomic<Int64>(1_000_000_000)

    private struct Note {
        /// The number of the observer, and its generation.
        let observer: Int
        let generation: Int
        let callSite: CallSite
    }

    /// State of all threads. Few of them have a loop that they have not driven yet.
    private struct Table {
        /// By the address of the job that represents the work, until the job ends. A job that is found here may be read
        /// under the lock, since it removes itself before it is deinitialized. No reference is therefore taken, and no
        /// object ends on another thread than it would otherwise. No foreign code runs under the lock.
        var notes: [UnsafeMutableRawPointer: Note] = [:]
        /// For the end of the process, in the order in which they were created.
        var observers: [UnrunWork] = []
        var reported: Set<CallSite> = []
        var lastNumber = 0
    }

    private static let table = LockedValue.ofProcess(Table())

    /// Called on the thread to be observed.
    init(isMain: Bool, isOfPool: Bool) {
        self.isMain = isMain
        self.isOfPool = isOfPool
        number = Self.table.withLock {
            $0.lastNumber += 1
            return $0.lastNumber
        }
        if !isOfPool { Self.table.withLock { $0.observers.append(self) } }
    }

    /// The thread is not observed any more.
    func end() { Self.table.withLock { $0.observers.removeAll { $0 === self } } }

    // MARK: Notes

    /// The call sites of work that has begun since the loop was last driven and still waits, in the order of file and
    /// line.
    var callSites: [CallSite] {
        guard hasNotes.load(ordering: .acquiring) else { return [] }
        let generation = generation.load(ordering: .relaxed)
        let found = Self.table.withLock { table in
            var found: Set<CallSite> = []
            for (job, note) in table.notes where note.observer == number && note.generation == generation {
                if found.contains(note.callSite) { continue }
                let isWaiting = Unmanaged<Job>.fromOpaque(job)._withUnsafeGuaranteedRef { $0.isStillWaiting }
                if isWaiting { found.insert(note.callSite) }
            }
            return found
        }
        return found.sorted { ($0.file, $0.line) < ($1.file, $1.line) }
    }

    func note(_ job: Job, _ callSite: CallSite) {
        let note = Note(observer: number, generation: generation.load(ordering: .relaxed), callSite: callSite)
        let address = Unmanaged.passUnretained(job).toOpaque()
        Self.table.withLock { $0.notes[address] = note }
        hasNotes.store(true, ordering: .releasing)
        guard !isWatched.load(ordering: .relaxed), withUnsafeCurrentTask(body: { $0 != nil }) else { return }
        guard !isWatched.exchange(true, ordering: .acquiringAndReleasing) else { return }
        // A thread of Swift's pool may live forever, so nobody waits for its end.
        Task.detached { [generation = note.generation] in await self.watch(since: generation) }
    }

    fileprivate static func callSite(of job: Job) -> CallSite? {
        let address = Unmanaged.passUnretained(job).toOpaque()
        return table.withLock { $0.notes[address]?.callSite }
    }

    fileprivate static func forget(_ job: Job) {
        let address = Unmanaged.passUnretained(job).toOpaque()
        table.withLock { _ = $0.notes.removeValue(forKey: address) }
    }

    func forgetAll() {
        if hasNotes.exchange(false, ordering: .acquiringAndReleasing) { generation.add(1, ordering: .relaxed) }
    }

    /// The loop is being driven: the attached handlers will run.
    /// - Returns: whether the thread is assumed to continue driving its loop.
    func loopIsDriven() -> Bool {
        forgetAll()
        return isMain || !isOfPool && withUnsafeCurrentTask(body: { $0 == nil })
    }

    // MARK: Reports

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
            return Self.report(callSites)
        }
    }

    /// Reports each call site once per process.
    static func report(_ callSites: [CallSite]) {
        for callSite in callSites where table.withLock({ $0.reported.insert(callSite).inserted }) {
            LoopEvent.send(.unrunWork(callSite))
        }
    }

    /// At the end of the process: reports the work of all observed threads.
    /// - Returns: whether the main thread is one of them.
    static func reportAll() -> Bool {
        let observers = table.withLock { $0.observers }
        for observer in observers { report(observer.callSites) }
        return observers.contains { $0.isMain }
    }
}

extension Job {
    /// The call site of the work that the job represents, if `EventLoop.note` has noted it.
    package var notedCallSite: CallSite? { UnrunWork.callSite(of: self) }

    /// Called before the job, which `EventLoop.note` has noted, is deinitialized.
    package func leaveUnrunWork() { UnrunWork.forget(self) }
}
