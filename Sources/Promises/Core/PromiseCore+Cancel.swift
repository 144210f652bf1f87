import Reactor
import Synchronization

// How a promise is cancelled.
//
// An operation belongs to one thread and is cancelled there; an externally settled promise is cancelled on any thread
// that could settle it. A withdrawn waiter loses its operation at once, but its node stays in the source's list until
// that is swept or delivered: other threads may be pushing onto it.

extension PromiseCore {
    /// Rejects this core with `error`, or with `PromiseError.cancelled`, and ends the work that would have settled it.
    /// The promise that it waits for is cancelled too, if it has no other waiters. If the core has settled, nothing
    /// happens.
    ///
    /// Any thread; a core that belongs to another thread is cancelled there, later.
    func cancel(with error: (any Error)? = nil) { cancel(.itself(error)) }

    func cancel(_ request: CancellationRequest) { Cancellation.cancel(self, request) }

    /// Cancels a promise that its holder no longer needs, unless another handler waits for it. Any thread.
    func cancelIfUnobserved() { cancel(.unobserved) }

    // MARK: Questions

    /// The core whose operation settles this one: itself, or the core that a handler has returned and that is linked to
    /// it.
    var settlingCore: PromiseCore {
        let word = upstream.load()
        return word.isLinkedFrom ? word.core.object : self
    }

    /// Whether the operation must run in any case, and has not run.
    var mustRun: Bool { role.contains(.runsWhenCancelled) && !marks.contains(.isAdopting) }

    /// Like `mustRun`, and the operation is not running.
    var isToRun: Bool { mustRun && !upstream.load().isTaken }

    /// Whether a cancellation ends here, and rejects this core when its source has settled.
    var isShielding: Bool { role.contains(.shielding) && !marks.contains(.isAdopting) }

    var isShieldedFromSource: Bool { isShielding && upstream.load().isWaiting }

    /// Whether a cancellation has reached it and it settles later.
    var isEndingLater: Bool {
        guard settled == nil else { return false }
        let core = root
        if core.role.contains(.externallySettled) { return !core.isOpen }
        // The marks of another thread's core may be changing, and its cancellation is still on its way.
        return core.loop == .ofThisThread && core.settlingCore.marks.contains(.isEndingCancelled)
    }

    /// Calls `body` when this core has settled, on the thread that settles it. It keeps no work alive, and handles a
    /// rejection.
    func whenEnded(_ body: @escaping () -> Void) {
        attach(PromiseCore(inline: Notification { _ in body() }, role: .keepsNoWorkAlive))
    }

    // MARK: The producer, on the core's own thread

    /// Drops the operation of this core, which has a source.
    /// - Returns: the source, unless that has settled and the core was scheduled to run.
    func leaveSource() -> PromiseCore? {
        guard let source = withdrawFromSource() else {
            dropOperation()
            waitsNoMore()
            return nil
        }
        destroyOperation()
        waitsNoMore()
        source.noteWithdrawal()
        return source
    }

    /// Withdraws this waiter, whose operation the caller drops or moves. The caller then records the withdrawal in the
    /// source.
    /// - Returns: the source; `nil` if that has settled, perhaps on another thread.
    private func withdrawFromSource() -> PromiseCore? {
        let word = upstream.load()
        guard word.isWaiting else { return nil }
        // Retained before the node withdraws: afterwards nothing keeps the source alive on its behalf.
        let source = word.core.object
        guard upstream.replace(word, by: .taken) else { return nil }
        hasArrived()
        return source
    }

    /// Withdraws this waiter, which belongs to this thread. If its source has settled, nothing happens: it has run, or
    /// is about to. The caller must hold the core that the waiter was attached to.
    /// - Returns: whether it was withdrawn.
    @discardableResult
    func withdraw() -> Bool {
        let word = upstream.load()
        guard word.isWaiting, upstream.replace(word, by: .taken) else { return false }
        hasArrived()
        code(self, .drop)
        word.core.borrow { $0.noteWithdrawal() }
        return true
    }

    // MARK: Rejecting later, on the core's own thread

    /// Drops the operation of this core, and rejects the core when its source has settled.
    func rejectWhenRun(with error: (any Error)?) {
        // Dropped last: that may run user code, which may turn the loop.
        let operation = marks.contains(.isAdopting) ? nil : PromiseCore(operationOf: self)
        if operation == nil { dropAdoption() }
        rejectNext(with: error)
        withExtendedLifetime(operation) {}
    }

    /// The operation still runs with the outcome of the source, and the core is rejected once the operation has ended,
    /// whatever its result.
    func runAndReject(with error: (any Error)?) {
        // The operation moves to a new core, which no other code refers to. The closure below takes its place here.
        let operation = PromiseCore(operationOf: self)
        continueBy { core, _ in
            operation.upstream.store(core.upstream.takeOut())
            operation.retain()
            operation.runAndRelease()
            core.reject(with: error, after: operation)
        }
    }

    /// Leaves the source, and lets the operation run in a job with the cancellation as its source's outcome. If the
    /// source has settled, the operation runs with the source's own outcome.
    /// - Returns: the job, with a reference, and the source.
    func leaveSourceAndRun(with error: (any Error)?) -> (job: CoreRef?, source: PromiseCore?) {
        guard let source = withdrawFromSource() else {
            runAndReject(with: error)
            return (nil, nil)
        }
        // The node stays in the list of the source. So the job is a separate core, which settles this one as if it were
        // a promise that the operation has returned.
        let run = PromiseCore(operationOf: self)
        _ = run.link(to: root, from: .pending)
        run.upstream.store(.cancellation(error))
        run.marks = [.isEndingCancelled, .countsAsWaiting]
        waitsNoMore()
        LoopRef.ofThisThread.borrow { $0.handlerDidAttach() }
        source.noteWithdrawal()
        return (.retaining(run), source)
    }

    /// Rejects this core once `operation` has settled. Consumes a reference to this core.
    private func reject(with error: (any Error)?, after operation: PromiseCore) {
        if let outcome = operation.settled {
            outcome.reference.borrow { $0.markHandled() }
            return finish(throwing: CancellationRequest.itself(error).rejection)
        }
        rejectNext(with: error)
        operation.attach(self)
        release()
    }

    /// Makes this core's next step its rejection, whatever its source's outcome.
    private func rejectNext(with error: (any Error)?) {
        continueBy { core, _ in
            core.upstream.takeOut().release()
            core.finish(throwing: CancellationRequest.itself(error).rejection)
        }
    }
}

extension UpstreamWord {
    /// The word of a node whose source has been cancelled.
    static func cancellation(_ error: (any Error)?) -> UpstreamWord {
        .settled(CoreRef.retaining(.cancelled(with: error)).address, as: .rejected)
    }
}

extension PromiseCore {
    /// A core rejected by a cancellation, as a source.
    static func cancelled(with error: (any Error)?) -> PromiseCore {
        guard let error else { return plainlyCancelled }
        let core = PromiseCore(error: error)
        core.markHandled()
        return core
    }

    private static let plainlyCancelled = cancelled(with: PromiseError.asCancellation)
}
