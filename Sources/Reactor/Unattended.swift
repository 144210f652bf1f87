import CLinux
import Glibc
import Synchronization

// Handlers that nobody will run, since nobody drives the loop of their thread: attached in a synchronous function that an
// async one has called, on a thread of Swift's pool; or on a thread that ends. Whether a thread drives its loop shows
// afterwards only. So the places are taken down, and forgotten when the loop is driven.

extension EventLoop {
    /// This thread, which has just got its loop, may never drive it. (The main thread's is looked at when the process ends.)
    func expectToBeDriven() {
        unattended = Unattended()
        leaveUnattended()
    }

    /// The outermost turn begins; or a pool's thread has ended a job, and attaches nothing before the next.
    func attend() {
        unattended?.forgetPlaces()
        if isCountedUnattended { clinux_count_unattended(-1) }
        isCountedUnattended = false
    }

    /// The outermost turn ends; or a job of a pool begins.
    func leaveUnattended() {
        if unattended == nil || isCountedUnattended { return }
        isCountedUnattended = true
        clinux_count_unattended(+1)
    }

    /// Where handlers have been attached that may wait in vain.
    package var unattendedPlaces: [Origin] { unattended?.noted ?? [] }

    /// The layer above has attached a handler here. Called only while threads are watched, or promises traced.
    package func handlerWasAttached(_ origin: Origin) {
        if let unattended, !isBeingDriven { unattended.note(origin) }
    }

    /// The loop has ended, with handlers that waited or without.
    func endUnattended(withHandlers: Bool) {
        if withHandlers { unattended?.reportAll() }
        attend()
        unattended = nil
    }

    /// The main thread's loop, when the process ends: if it has never been driven, somebody has forgotten to.
    static func watchMainLoop() {
        atexit {
            guard clinux_gettid() == getpid() else { return }
            let loop = EventLoop.ofThisThread
            let left = loop.counters.turns == 0 ? loop.waitingHandlers + loop.ready.countOfReported : 0
            if left > 0 && !loop.isForked { LoopReport.send(.undelivered(left)) }
        }
    }
}

/// The places of handlers that wait for somebody to drive their loop.
package final class Unattended: Sendable {
    private let places = Mutex<[Origin]>([])
    private static var most: Int { 64 }

    /// How long a task may leave its thread's loop alone before that is reported. A synchronous test attaches its handlers and
    /// hangs a moment later, on a thread of Swift's pool too.
    package static let patience = Atomic<Int64>(1_000_000_000)

    /// Those that have been reported: once each.
    private static let reported = Mutex<Set<Origin>>([])

    var noted: [Origin] { places.withLock { $0 } }

    func note(_ origin: Origin) {
        let isNew = places.withLock { places in
            if places.contains(origin) || places.count == Self.most { return false }
            places.append(origin)
            return true
        }
        guard isNew, !Self.reported.withLock({ $0.contains(origin) }), withUnsafeCurrentTask(body: { $0 != nil }) else {
            return
        }
        // A thread of Swift's pool may live on for ever, so its end is not waited for.
        Task.detached { [self] in
            try? await Task.sleep(for: .nanoseconds(Self.patience.load(ordering: .relaxed)))
            if places.withLock({ $0.contains(origin) }) { Self.report(origin) }
        }
    }

    func forgetPlaces() { places.withLock { $0.removeAll(keepingCapacity: true) } }

    func reportAll() {
        let places = places.withLock { places in
            defer { places = [] }
            return places
        }
        for place in places { Self.report(place) }
    }

    private static func report(_ origin: Origin) {
        if reported.withLock({ $0.insert(origin).inserted }) { LoopReport.send(.unattended(origin)) }
    }
}
