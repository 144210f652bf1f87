import Reactor
import Synchronization

/// A task that waits for a promise, as the waiter in that promise's list: the one object that suspending allocates.
///
/// Several may end the wait, of which one resumes the task: who settles the promise; who lets its waiters go since nobody
/// will; who cancels the task. That one is decided by `phase`, and so an unsafe continuation is safe here.
// @unchecked: as Core. `continuation` is written once, before `phase` says so (releasing), and read by the one that takes
// `phase` to its end (acquiring).
@usableFromInline
final class TaskWaiter: Core, @unchecked Sendable {
    private enum Phase {
        /// The task does not wait yet.
        static var idle: UInt8 { 0 }
        /// The continuation is there; the waiter is on its way into the promise's list.
        static var attaching: UInt8 { 1 }
        /// It stands there, and may be withdrawn.
        static var waiting: UInt8 { 2 }
        /// How it ended: the promise has told us, or will not tell anybody. What it told is in `upstream`, owned.
        static var told: UInt8 { 3 }
        /// How it ended: the task was cancelled.
        static var cancelled: UInt8 { 4 }
    }

    private let phase = Atomic(Phase.idle)
    @exclusivity(unchecked) private var continuation: UnsafeContinuation<Void, Never>?

    @usableFromInline
    init() {
        super.init(state: State.pending, loop: nil) { core, phase in
            unsafeDowncast(core, to: TaskWaiter.self).isTold()
            // The reference is ours. The outcome stays in `upstream` for the task, and goes with the waiter.
            if case .run = phase { Unmanaged.passUnretained(core).release() }
        }
    }

    // Whoever suspends holds the promise meanwhile.

    /// Returns when the promise has settled, or nobody is left who could settle it.
    @usableFromInline
    func suspend(until promise: Core, _ isolation: isolated (any Actor)? = #isolation) async {
        await withUnsafeContinuation { begin($0, promise) }
    }

    /// The same, or when the task is cancelled; the promise then is too, unless others wait for it.
    @usableFromInline
    func suspendOrCancel(until promise: Core, _ isolation: isolated (any Actor)? = #isolation) async {
        await withTaskCancellationHandler {
            // A closure that does not name the actor leaves it, for Swift's pool and back again.
            _ = isolation
            await withUnsafeContinuation { begin($0, promise) }
        } onCancel: {
            cancel(promise)
        }
    }

    /// What came of it. Once the task has been resumed.
    @usableFromInline
    func outcome<T>() throws -> T {
        if phase.load(ordering: .acquiring) == Phase.cancelled { throw CancellationError() }
        let word = upstream.load(ordering: .acquiring)
        switch word & Upstream.mark {
        case Upstream.fulfilled: return Self.core(word).value(as: T.self)
        case Upstream.rejected: throw Self.core(word).error
        // Let go without an outcome.
        default: throw PromiseError.abandoned
        }
    }

    private func begin(_ continuation: UnsafeContinuation<Void, Never>, _ promise: Core) {
        self.continuation = continuation
        guard pass(from: Phase.idle, to: Phase.attaching) else {
            promise.cancelUnlessWanted()
            return continuation.resume()
        }
        promise.attach(self)
        if pass(from: Phase.attaching, to: Phase.waiting) { return }
        // It ended meanwhile. A cancellation has found nothing that could be withdrawn.
        if phase.load(ordering: .acquiring) == Phase.cancelled { withdraw(from: promise) }
    }

    private func cancel(_ promise: Core) {
        switch end(as: Phase.cancelled) {
        case Phase.attaching: resume()
        case Phase.waiting:
            withdraw(from: promise)
            resume()
        // Not begun: `begin` finds out. Or ended.
        default: break
        }
    }

    private func withdraw(from promise: Core) {
        withdraw()
        promise.cancelUnlessWanted()
    }

    private func isTold() {
        let ended = end(as: Phase.told)
        if ended == Phase.attaching || ended == Phase.waiting { resume() }
    }

    private func resume() {
        // There: whoever ended the wait has found it begun.
        guard let continuation else { return }
        guard EventLoop.isEndingOnThisThread else { return continuation.resume() }
        // A thread that ends has lost what Swift's own pool needs to take a task from it.
        AsyncThreads.shared.run { continuation.resume() }
    }

    private func pass(from old: UInt8, to new: UInt8) -> Bool {
        phase.compareExchange(expected: old, desired: new, ordering: .acquiringAndReleasing).exchanged
    }

    /// Ends the wait, if it has not ended; how far it had come is the answer.
    private func end(as end: UInt8) -> UInt8 {
        var seen = phase.load(ordering: .acquiring)
        while seen < Phase.told {
            let (done, now) = phase.weakCompareExchange(
                expected: seen, desired: end, ordering: .acquiringAndReleasing)
            if done { break }
            seen = now
        }
        return seen
    }
}
