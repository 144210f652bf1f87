import Reactor
import Synchronization

/// Continues a cancellation when the promise above has settled, which ends later. It keeps no work alive: what it waits for has
/// been cancelled.
// @unchecked Sendable: as PromiseCore.
class CancellationWaiter: PromiseCore, @unchecked Sendable {
    /// - Parameter loop: where it runs; `nil` for the thread that settles the source.
    init(on loop: LoopRef?) {
        super.init(state: .pending, loop: loop, role: .keepsNoWorkAlive, code: .none)
    }

    // The loop counts what this waiter continues, not the waiter itself.
    final func wait(for source: PromiseCore) { source.attach(self) }

    /// The source has settled.
    func resume() { preconditionFailure("abstract") }

    /// The loop is ending before the source has settled.
    func giveUp() { preconditionFailure("abstract") }

    final override func runAndRelease() {
        releaseSource()
        resume()
        release()
    }

    final override func discardAndRelease() {
        releaseSource()
        giveUp()
        release()
    }

    private func releaseSource() {
        leaveLoop()
        let word = upstream.takeOut()
        if word.address != 0 { word.release() }
    }
}

/// Continues a cancellation on the thread of a core that does not settle at once: as a job, or as a waiter of the promise
/// that settles before it.
// @unchecked Sendable: as PromiseCore.
final class CancelledRun: CancellationWaiter, @unchecked Sendable {
    private let core: PromiseCore
    private let reason: (any Error)?

    init(_ core: PromiseCore, _ error: (any Error)?) {
        self.core = core
        reason = error
        super.init(on: .ofThisThread)
    }

    // Reported as the handler that the core is. The core itself is still in the list of its source, or was.
    override var isCountedAsWaiting: Bool { core.isCountedAsWaiting }

    /// Runs the core's operation with the cancellation as its source's outcome.
    override func resume() {
        core.upstream.store(.cancellation(reason))
        core.retain()
        core.runAndRelease()
    }

    override func giveUp() {
        core.destroyOperation()
        core.producerDidEnd(.loopEnded)
        core.waitsNoMore()
    }
}

/// Calls a closure once promises that end later have settled, or never will.
// @unchecked Sendable: as PromiseCore.
final class AfterCleanUps: CancellationWaiter, @unchecked Sendable {
    private let body: () -> Void

    /// - Parameter loop: where `body` runs; `nil` for the thread that settles the source.
    init(_ source: PromiseCore, on loop: LoopRef?, _ body: @escaping () -> Void) {
        self.body = body
        super.init(on: loop)
        wait(for: source)
    }

    override var isCountedAsWaiting: Bool { false }
    override var isReportedUndelivered: Bool { false }
    override func resume() { body() }
    override func giveUp() { body() }
}

/// Rejects a cancelled core when the last promise has settled, or never will, that the cancellation waits for: its last
/// reference is released then.
final class CancellationEnd {
    private let core: PromiseCore
    private let error: (any Error)?

    init(of core: PromiseCore, with error: (any Error)?) {
        self.core = core
        self.error = error
    }

    func wait(for source: PromiseCore, on loop: LoopRef?) {
        _ = AfterCleanUps(source, on: loop) { [self] in _ = self }
    }

    deinit {
        // A combinator may have settled meanwhile; the cancellation has claimed any other core.
        if core.isCombinator && (!core.isOpen || core.settled != nil) { return }
        core.reject(by: .itself(error), at: core.callSite)
    }
}
