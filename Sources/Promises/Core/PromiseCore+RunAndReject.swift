import Reactor
import Synchronization

// Cancellation of a core that is scheduled to run an operation which must run in any case.

extension PromiseCore {
    /// For a core whose source has settled: its operation still runs with that outcome, and the core is rejected once
    /// the operation has ended, whatever its result.
    func runAndReject(with error: (any Error)?) {
        // The operation moves to a core of its own, which no other code refers to. The closure below takes its place
        // here.
        let operation = PromiseCore(operationOf: self)
        store(
            AdoptingWaiter { core, _ in
                operation.upstream.store(
                    core.upstream.exchange(Upstream.taken, ordering: .relaxed), ordering: .relaxed)
                operation.retain()
                operation.runAndRelease()
                core.reject(with: error, after: operation)
            })
        isAdopting = true
    }

    /// Rejects this core once `operation` has settled. Consumes a reference to this core.
    private func reject(with error: (any Error)?, after operation: PromiseCore) {
        if let (root, _) = operation.settled {
            root._withUnsafeGuaranteedRef { $0.markHandled() }
            return finish(throwing: error ?? Self.cancellationError)
        }
        store(
            AdoptingWaiter { core, _ in
                Self.release(upstream: core.upstream.exchange(Upstream.taken, ordering: .relaxed))
                core.finish(throwing: error ?? Self.cancellationError)
            })
        isAdopting = true
        cameByLink = false
        operation.attach(self)
        Unmanaged.passUnretained(self).release()
    }

    /// A core that takes over the operation of another core, whose payload must then be stored anew.
    convenience init(operationOf other: PromiseCore) {
        self.init(state: State.pending, loop: other.loop, code: other.code)
        movePayload(from: other)
    }
}
