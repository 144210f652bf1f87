import Reactor
import Synchronization

// Cancelled on the way to an operation that runs in any case.

extension PromiseCore {
    /// For a core that has been told how its source has settled: lets its operation be told so too, and rejects the core
    /// once the operation has ended, whatever that comes to.
    func runAndReject(with error: (any Error)?) {
        // The operation goes to a core of its own, which nothing else knows of; what happens here stands in its place.
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

    /// A core that the operation of another moves to, which is to be stored anew there.
    convenience init(operationOf other: PromiseCore) {
        self.init(state: State.pending, loop: other.loop, code: other.code)
        movePayload(from: other)
    }
}
