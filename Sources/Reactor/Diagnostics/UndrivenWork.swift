import ReactorLibc
import Synchronization

/// Observes a thread that may never drive its loop, and reports work that never runs there. Examples are the threads in
/// Swift's pool (where a synchronous function, called by an async one, attaches handlers), Dispatch's threads, and a
/// thread that ends early.
///
/// Only later is it clear whether a thread drives its loop. So work that begins outside a turn is noted, until the work
/// ends or the loop is driven.
///
/// Operators note work in their tracing code, so only observed threads pay, with one call per operator. A thread of the
/// program stops paying once it has driven its loop. Threads of Swift's pool or a `ThreadPool` keep paying, since they
/// run unrelated code.
package final class UndrivenWork: Sendable {
    let isMain: Bool
    /// True when the thread belongs to a `ThreadPool`, which is checked after each job.
    let isOfPool: Bool
    private let number: Int
    /// Times that the loop was driven after a note.
    private let generation = Atomic<Int>(0)
    private let hasNotes = Atomic(false)
    private let isWatched = Atomic(false)

    /// The nanoseconds that a task may leave its thread's loop undriven before a report. A synchronous
    /// test attaches its handlers and hangs a moment later, even on a thread of Swift's pool.
    package static let gracePeriod = Atomic<Int64>(1_000_000_000)

    private struct Note {
        let observer: Int
        let generation: Int
        let callSite: CallSite
    }

    /// State shared by all threads, since few have an undriven loop.
    private struct Table {
        /// Notes by the address of the work's job, until the job ends. Under the lock, a job in here may be read, since
        /// its `deinit` needs the lock to remove it. So no reference is taken, no object is destroyed on another
        /// thread, and no foreign code runs under the lock.
        var notes: [UnsafeMutableRawPointer: Note] = [:]
        /// The observers in order of creation, for reports at process exit.
        var observers: [UndrivenWork] = []
        var reported: Set<CallSite> = []
        var lastNumber = 0
        /// Threads of Swift's pool, each with its generation when added.
        var watched: [(UndrivenWork, since: Int)] = []
        var hasWatcher = false
    }

    private static let table = LockedValue.ofProcess(Table())

    /// Called on the observed thread.
    init(isMain: Bool, isOfPool: Bool) {
        self.isMain = isMain
        self.isOfPool = isOfPool
        number = Self.table.withLock {
            $0.lastNumber += 1
            return $0.lastNumber
        }
        if !isOfPool { Self.table.withLock { $0.observers.append(self) } }
    }

    func end() { Self.table.withLock { $0.observers.removeAll { $0 === self } } }

    // MARK: Notes

    /// The call sites of waiting work that began after the loop was last driven, by file and line.
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
        watch(since: note.generation)
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

    /// - Returns: true if the thread will probably drive its loop again.
    func loopIsDriven() -> Bool {
        forgetAll()
        return isMain || !isOfPool && withUnsafeCurrentTask(body: { $0 == nil })
    }

    // MARK: Reports

    /// Watches threads of Swift's pool, which may never end. Not a task: starting one blocks the caller while no thread
    /// can be started.
    private static let watcher = try! ThreadPool(name: "watcher", threads: 1)

    private func watch(since generation: Int) {
        if Self.watcher.isForked { return }
        let needsWatcher = Self.table.withLock { table in
            table.watched.append((self, generation))
            defer { table.hasWatcher = true }
            return !table.hasWatcher
        }
        if !needsWatcher { return }
        do { try Self.watcher.dispatch { while Self.watchOnce() {} } } catch {
            // No thread; later notes try again.
            for (observer, _) in Self.takeWatched(hasWatcher: false) {
                observer.isWatched.store(false, ordering: .releasing)
            }
        }
    }

    /// Returns `watched` and empties it. By default, the watcher continues if any were returned.
    private static func takeWatched(hasWatcher: Bool? = nil) -> [(UndrivenWork, since: Int)] {
        table.withLock { table in
            table.hasWatcher = hasWatcher ?? !table.watched.isEmpty
            defer { table.watched = [] }
            return table.watched
        }
    }

    /// Waits, then reports threads whose loop was not driven meanwhile. Returns false if there are none.
    private static func watchOnce() -> Bool {
        let watched = takeWatched()
        if watched.isEmpty { return false }
        usleep(UInt32(clamping: gracePeriod.load(ordering: .relaxed) / 1000))
        for (observer, generation) in watched { observer.report(since: generation) }
        return true
    }

    private func report(since generation: Int) {
        let now = self.generation.load(ordering: .relaxed)
        // The loop was driven, and more work began.
        if hasNotes.load(ordering: .acquiring) && now != generation {
            Self.table.withLock { $0.watched.append((self, now)) }
        } else {
            // Later notes start the watch again.
            isWatched.store(false, ordering: .releasing)
            Self.report(callSites)
        }
    }

    /// Reports each call site once per process.
    static func report(_ callSites: [CallSite]) {
        for callSite in callSites where table.withLock({ $0.reported.insert(callSite).inserted }) {
            LoopEvent.send(.undrivenWork(callSite))
        }
    }

    /// Reports the work of all observed threads at process exit.
    /// - Returns: true if the main thread was among them.
    static func reportAll() -> Bool {
        let observers = table.withLock { $0.observers }
        for observer in observers { report(observer.callSites) }
        return observers.contains { $0.isMain }
    }
}

extension Job {
    package var notedCallSite: CallSite? { UndrivenWork.callSite(of: self) }

    /// Called before the `deinit` of a job that `EventLoop.note` noted.
    package func leaveUndrivenWork() { UndrivenWork.forget(self) }
}
