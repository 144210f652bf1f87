import Reactor

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
    func cancel(with error: (any Error)? = nil) { cancel(CancellationRequest(error: error)) }

    func cancel(_ request: CancellationRequest) { Cancellation.cancel(self, request) }

    /// Cancels a promise that its holder no longer needs, unless another handler waits for it. Any thread.
    func cancelUnlessWanted() { cancel(.unlessWanted) }

    /// Rejects this core, which was cancelled.
    func rejectCancelled(with error: (any Error)?, at callSite: CallSite?) {
        // An unhandled cancellation is not reported; the mark saves the core's deinit from examining the error.
        reject(error ?? PromiseError.asCancellation, at: callSite, as: error == nil ? .rejectedAndHandled : .rejected)
    }

    // MARK: Questions

    /// The core whose operation settles this one: itself, or the core that a handler has returned and that is linked to
    /// it.
    var settlingCore: PromiseCore {
        let word = upstream.load()
        return word.isLinkedFrom ? word.core.object : self
    }

    /// How a cancellation ends this core if nothing above it ends later.
    var endingByItself: Cancellation.Ending {
        if marks.contains(.hasNextStep) { return .now }
        let word = upstream.load()
        if role.contains(.runsWhenCancelled) && !word.isTaken { return .afterCleanUp }
        return role.contains(.shielding) && word.isWaiting ? .afterSource : .now
    }

    /// Whether a cancellation has reached it and it settles later.
    var isEndingLater: Bool {
        guard settled == nil else { return false }
        if role.contains(.externallySettled) { return !isOpen }
        // The marks of another thread's core may be changing, and its cancellation is still on its way.
        return loop == .ofThisThread && settlingCore.marks.contains(.isEndingCancelled)
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
        if let source = withdraw() { return source }
        dropOperation()
        waitsNoMore()
        return nil
    }

    /// Withdraws this waiter, and drops its operation; see `withdraw(_:)`.
    @discardableResult
    func withdraw() -> PromiseCore? { withdraw { destroyOperation() }?.source }

    /// Withdraws this waiter. If its source has settled, perhaps on another thread, nothing happens: the waiter has run, or
    /// is about to. If another thread may run the waiter, which has no loop then, or takes it without a reference, as from
    /// a `hang`, the caller must hold the core that the waiter was attached to.
    /// - Parameter dispose: takes the operation out.
    /// - Returns: the source that it was withdrawn from.
    @inline(__always)
    private func withdraw<Result>(_ dispose: () -> Result) -> (Result, source: PromiseCore)? {
        let word = upstream.load()
        // Retained before the node withdraws: afterwards nothing keeps the source alive on its behalf.
        guard let source = word.source, upstream.replace(word, by: .taken) else { return nil }
        leaveOutsideWaiters()
        let result = dispose()
        waitsNoMore()
        source.noteWithdrawal()
        return (result, source)
    }

    // MARK: Rejecting later, on the core's own thread

    /// Rejects this core when its source has settled. A clean-up runs first, with the outcome of the source; the core is
    /// rejected whatever its result. Any other operation is dropped.
    func rejectAfterSource(with error: (any Error)?) {
        if marks.contains(.hasNextStep) {
            dropNextStep()
            return rejectNext(with: error)
        }
        // The operation moves to a new core, which no other code refers to. The next step takes its place here.
        let operation = PromiseCore(operationOf: self)
        guard role.contains(.runsWhenCancelled) else {
            rejectNext(with: error)
            // Dropped last: that may run user code, which may turn the loop.
            return withExtendedLifetime(operation) {}
        }
        continueBy { core in
            operation.upstream.store(core.upstream.takeOut())
            operation.retain()
            operation.runAndRelease()
            core.finish(rejectedWith: error, after: operation)
        }
    }

    /// Leaves the source. A job, which the caller queues, then runs the operation with the cancellation as its source's
    /// outcome.
    /// - Returns: the job, with a reference, and the source. `nil`, without any effect, if that has settled.
    func leaveSourceForJob(with error: (any Error)?) -> (CoreRef, source: PromiseCore)? {
        withdraw {
            // The node stays in the list of the source. So the job is a separate core, which settles this one as if it
            // were a promise that the operation has returned: it is linked, so that `isEndingLater` finds its mark by
            // `settlingCore`.
            let job = PromiseCore(operationOf: self)
            _ = job.link(to: root, from: .pending)
            job.upstream.store(.cancellation(error))
            job.marks = [.isEndingCancelled, .countsAsWaiting]
            LoopRef.ofThisThread.borrow { $0.handlerDidAttach() }
            return CoreRef.retaining(job)
        }
    }

    /// Rejects this core once `operation` has settled. Consumes a reference to this core.
    private func finish(rejectedWith error: (any Error)?, after operation: PromiseCore) {
        if let outcome = operation.settled {
            outcome.reference.borrow { $0.markHandled() }
            return finish(throwing: error ?? PromiseError.asCancellation)
        }
        rejectNext(with: error)
        operation.attach(self)
        release()
    }

    /// Makes this core's next step its rejection, whatever its source's outcome.
    private func rejectNext(with error: (any Error)?) {
        continueBy { core in
            core.upstream.takeOut().release()
            core.finish(throwing: error ?? PromiseError.asCancellation)
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
