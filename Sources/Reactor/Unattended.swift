import CLinux
import Glibc
import Synchronization

// Handlers that nobody will run, since nobody drives the loop of their thread: attached in a synchronous function that an
// async one has called, on a thread of Swift's pool; or on a thread that ends. Whether a thread drives its loop shows
// afterwards only. So the places are taken down, and forgotten when the loop is driven.
//
// That costs the thread concerned a call in each operator outside a turn, and a slower turn; it costs other threads nothing.
// A thread of the program's own stops paying when it drives its loop for the first time: from then on it is taken to know what
// it does. A thread of Swift's pool or of a `ThreadPool` goes on: it runs code of different origins, one after the other.

extension EventLoop {
    /// This thread, which has just got its loop, may never drive it. Once the main thread has, it is taken to know what it does.
    func expectToBeDriven(isMain: Bool) {
        let unattended = Unattended(isMain: isMain)
        self.unattended = unattended
        Self.noteHandlersIfNeeded()
        if isMain { Self.unattendedMain.withLock { $0 = unattended } }
    }

    /// Lets the operators of this thread note where they attach, if its current loop may never be driven, and is not being
    /// driven now.
    static func noteHandlersIfNeeded() {
        guard let address = clinux_get_current_loop() else { return clinux_set_noting_handlers(false) }
        clinux_set_noting_handlers(
            Unmanaged<EventLoop>.fromOpaque(address)._withUnsafeGuaranteedRef {
                $0.unattended != nil && !$0.isBeingDriven
            })
    }

    /// Whether operators of this thread note where they attach.
    package static var isNotingHandlers: Bool { clinux_is_noting_handlers() }

    /// The outermost turn begins. Returns whether operators have noted where they attach, and are to do so again afterwards.
    func beginDriving() -> Bool {
        forgetUnattended()
        // Not those of a `withLoop` inside which this loop is turned.
        let wasNoting = clinux_is_noting_handlers()
        if wasNoting { clinux_set_noting_handlers(false) }
        return wasNoting
    }

    /// That turn ends. Only if operators had noted where they attach.
    func stopDriving() { clinux_set_noting_handlers(unattended != nil) }

    /// The loop is driven: what has been attached will run. On a thread of the program's own nothing is noted any more.
    func forgetUnattended() {
        guard let unattended else { return }
        unattended.forgetPlaces()
        guard unattended.isMain || !unattended.isOfPool && withUnsafeCurrentTask(body: { $0 == nil }) else { return }
        stopWatching()
    }

    private func stopWatching() {
        guard let unattended = unattended.take() else { return }
        Self.noteHandlersIfNeeded()
        if unattended.isMain { Self.unattendedMain.withLock { $0 = nil } }
    }

    /// That of the main thread's loop until it is driven, for who ends the process on another thread.
    private static let unattendedMain = Guarded<Unattended?>(nil)

    /// Whether somebody drives this loop, or it is not known to be one that nobody may.
    var isAttended: Bool { isBeingDriven || unattended?.isMain ?? true }

    /// Where handlers have been attached that may wait in vain.
    package var unattendedPlaces: [Origin] { unattended?.noted ?? [] }

    /// The layer above has attached a handler here, or begun something that this loop is to bring. Called only
    /// while this thread notes that, or promises are traced.
    package func handlerWasAttached(_ origin: Origin) {
        if let unattended, !isBeingDriven { unattended.note(origin) }
    }

    /// The loop has ended, with handlers that waited or without.
    func endUnattended(withHandlers: Bool) {
        if withHandlers { unattended?.reportAll() }
        unattended?.forgetPlaces()
        stopWatching()
    }

    /// The main thread's loop, when the process ends: if it has never been driven, somebody has forgotten to.
    static func watchMainLoop() {
        atexit {
            // An async `main` leaves the main thread for others, one of which calls exit.
            EventLoop.unattendedMain.withLock { $0 }?.reportAll()
            guard clinux_gettid() == getpid() else { return }
            let loop = EventLoop.ofThisThread
            let left = loop.counters.turns == 0 ? loop.waitingHandlers + loop.ready.countOfReported : 0
            if left > 0 && !loop.isForked { LoopReport.send(.undelivered(left)) }
        }
    }
}

/// The places of handlers that wait for somebody to drive their loop.
package final class Unattended: Sendable {
    let isMain: Bool
    /// Whether its thread is a `ThreadPool`'s.
    let isOfPool = PoolThreads.isWorker
    private struct Places {
        var all: [Origin] = []
        /// How often they have been forgotten.
        var generation = 0
        /// Whether a task looks after them.
        var isWatched = false
    }
    private let places = Guarded(Places())
    private static var most: Int { 64 }

    /// How long a task may leave its thread's loop alone before that is reported. A synchronous test attaches its handlers and
    /// hangs a moment later, on a thread of Swift's pool too.
    package static let patience = Atomic<Int64>(1_000_000_000)

    /// Those that have been reported: once each.
    private static let reported = Guarded<Set<Origin>>([])

    init(isMain: Bool) { self.isMain = isMain }

    var noted: [Origin] { places.withLock { $0.all } }

    func note(_ origin: Origin) {
        let (isNew, generation, isWatched) = places.withLock { places in
            if places.all.contains(origin) || places.all.count == Self.most { return (false, 0, true) }
            places.all.append(origin)
            return (true, places.generation, places.isWatched)
        }
        guard isNew && !isWatched, withUnsafeCurrentTask(body: { $0 != nil }) else { return }
        places.withLock { $0.isWatched = true }
        // A thread of Swift's pool may live on for ever, so its end is not waited for.
        Task.detached { await self.watch(since: generation) }
    }

    /// Reports what is left alone for as long as the patience lasts.
    private func watch(since generation: Int) async {
        var generation = generation
        while true {
            try? await Task.sleep(for: .nanoseconds(Self.patience.load(ordering: .relaxed)))
            let (places, now, isEnd) = places.withLock { places in
                let isEnd = places.all.isEmpty || places.generation == generation
                if isEnd { places.isWatched = false }
                return (places.all, places.generation, isEnd)
            }
            // Driven meanwhile, or nothing has been begun since.
            if now == generation { for place in places { Self.report(place) } }
            if isEnd { return }
            generation = now
        }
    }

    func forgetPlaces() {
        places.withLock { places in
            if places.all.isEmpty { return }
            places.all.removeAll(keepingCapacity: true)
            places.generation += 1
        }
    }

    func reportAll() {
        let places = places.withLock { places in
            defer { places.all = [] }
            return places.all
        }
        for place in places { Self.report(place) }
    }

    private static func report(_ origin: Origin) {
        if reported.withLock({ $0.insert(origin).inserted }) { LoopReport.send(.unattended(origin)) }
    }
}
