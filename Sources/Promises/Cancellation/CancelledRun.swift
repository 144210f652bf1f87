import Reactor
import Synchronization

/// Continues a cancellation on the thread of a core that does not settle at once: as a job, or as a waiter of the promise
/// that settles before it. As a waiter it does not listen: its promise has been cancelled.
// @unchecked Sendable: as PromiseCore.
class CancelledRun: PromiseCore, @unchecked Sendable {
    private let core: PromiseCore
    private let reason: (any Error)?

    /// - Parameter loop: where it runs; `nil` for inline.
    init(_ core: PromiseCore, _ error: (any Error)?, on loop: LoopRef? = .ofThisThread) {
        self.core = core
        reason = error
        super.init(state: .pending, loop: loop, role: .notListening) { _, _ in }
    }

    final func wait(for source: PromiseCore) {
        source.attach(self)
        // Its core is counted.
        waitsNoMore()
    }

    // Reported as the handler that the core is. The core itself is still in the list of its source, or was.
    override var isCountedAsWaiting: Bool { core.isCountedAsWaiting }

    override func runAndRelease() {
        releaseSource()
        resume()
        release()
    }

    override func discardAndRelease() {
        releaseSource()
        giveUp()
        release()
    }

    /// Runs the core's operation with the cancellation as its source's outcome.
    fileprivate func resume() {
        core.upstream.store(.cancellation(reason))
        core.retain()
        core.runAndRelease()
    }

    fileprivate func giveUp() {
        core.destroyOperation()
        core.producerDidEnd(.loopEnded)
        core.waitsNoMore()
    }

    private func releaseSource() {
        leaveLoop()
        let word = upstream.takeOut()
        if word.address != 0 { word.release() }
    }
}

/// Calls a closure once promises that end later have settled, or never will.
// @unchecked Sendable: as PromiseCore.
final class AfterCleanUps: CancelledRun, @unchecked Sendable {
    private let body: () -> Void

    /// - Parameter loop: where `body` runs; `nil` for the thread that settles the source.
    init(_ source: PromiseCore, on loop: LoopRef?, _ body: @escaping () -> Void) {
        self.body = body
        super.init(source, nil, on: loop)
        wait(for: source)
    }

    override var isCountedAsWaiting: Bool { false }
    override var isReportedUndelivered: Bool { false }
    fileprivate override func resume() { body() }
    fileprivate override func giveUp() { body() }
}
