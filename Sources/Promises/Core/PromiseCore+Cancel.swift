import Reactor
import ReactorLibc

// The parts of a cancellation in one promise; see `Cancellation`.

extension PromiseCore {
    /// Ends the work above this core, whose promise is rejected with `PromiseError.cancelled`; see `Cancellation`. With
    /// `error`, this core is rejected with that in the end. If the core has settled, nothing happens.
    ///
    /// Any thread; a core that belongs to another thread is cancelled there, later.
    package func cancel(with error: (any Error)? = nil) { Cancellation.cancel(self, with: error) }

    /// Cancels a promise that its holder no longer needs, unless another handler waits for it. Any thread.
    func cancelUnlessWanted() {
        if !isHere { postCancel(with: nil, unlessWanted: true) } else if !isWanted(besides: nil) { cancel() }
    }

    /// Rejects this waiting core with `error`, in a job, without waiting for its source, which is cancelled unless
    /// another handler waits for it. If the core has been cancelled before, the cancellation rejects it now. On the core's
    /// thread.
    package func cancelNow(with error: any Error) {
        guard let source = sourceWord.load().source else { return }
        leaveSource(for: marks.contains(.isCancelled) ? .plainlyCancelled : .cancelled(with: error))
        source.cancelUnlessWanted()
    }

    /// Rejects this core, which was cancelled.
    package func rejectCancelled(with error: (any Error)?, at callSite: CallSite?) {
        // An unhandled cancellation is not reported; the mark saves the core's deinit from examining the error.
        reject(error ?? PromiseError.asCancellation, at: callSite, as: error == nil ? .rejectedAndHandled : .rejected)
    }

    // MARK: Questions

    /// True when this thread may end it: any thread if it is externally settled, otherwise the thread of its living loop.
    var isHere: Bool {
        if role.contains(.externallySettled) { return true }
        guard let here = LoopRef.ofThisThreadIfAny, loop == here else { return false }
        return here.borrow { !$0.hasEnded }
    }

    /// True when a cancellation has reached this promise of this thread, whose operation begins no other work then.
    @usableFromInline
    var hasBeenCancelled: Bool { settled != nil || root.marks.contains(.isCancelled) }

    /// The core whose operation settles this one: itself, or the core that a handler has returned and that is linked to
    /// it. One step leads there: a link leads to the last root, and `didLink` copies what the linked core has noted.
    var settlingCore: PromiseCore {
        let word = sourceWord.load()
        return word.isLinkedFrom ? word.core.object : self
    }

    /// Tells if it is in the list of that core.
    func waits(for source: PromiseCore) -> Bool { sourceWord.load() == .waiting(forCoreAt: source.address) }

    /// Calls `body` when this core has settled, on the thread that settles it. It keeps no work alive, and handles a
    /// rejection.
    package func whenSettled(_ body: @escaping () -> Void) {
        attach(PromiseCore(inline: Notification { _ in body() }, role: .keepsNoWorkAlive))
    }

    // MARK: Externally settled promises, on any thread

    /// Claims the promise for a cancellation, which then rejects it.
    /// - Returns: the list of its waiters as it was when it was locked. A clean-up that is pushed later comes too late: it
    ///   runs when the promise is rejected. `nil` if the promise has settled, or another party has claimed it.
    func claimForCancellation() -> LockedWaiters? {
        guard let waiters = LockedWaiters(of: self), claim() else { return nil }
        annotate(.isDecidedByCancellation)
        return waiters
    }

    /// True when a cancellation decides the outcome: it rejects the promise now, or after its clean-ups or work have ended.
    package var isDecidedByCancellation: Bool {
        guard role.contains(.externallySettled) else { return false }
        // That thread may be about to annotate it, or to reject it.
        while case let seen = state.load(), seen.isPending && !seen.isClaimable && seen.isLocked { sched_yield() }
        return has(.isDecidedByCancellation)
    }

    // MARK: Another thread's promises

    /// Cancels a promise on the thread of its loop, unless it has settled by then.
    func postCancel(with error: (any Error)?, unlessWanted: Bool) {
        // This thread's own loop has ended, and its promises with it; or the promise has settled and has no loop.
        guard let loop, loop != LoopRef.ofThisThreadIfAny else { return }
        // A loop that has ended refuses the job: it has ended its promises itself, but for those that wait in a circle.
        loop.borrow {
            _ = $0.post(InternalJob { [self] in unlessWanted ? cancelUnlessWanted() : cancel(with: error) })
        }
    }

    // MARK: Leaving the source, on the core's own thread

    /// Withdraws this waiter, whose operation the caller must take out. If its source has settled, perhaps on another
    /// thread, nothing happens: the waiter has run, or is about to. If another thread may run the waiter, which has no
    /// loop then, or takes it without a reference, as from a `hang`, the caller must hold the core that the waiter was
    /// attached to.
    ///
    /// The node stays in the source's list, as a tombstone, until that is swept or delivered: other threads may be
    /// pushing onto the list.
    /// - Returns: the source, which the caller must call `noteWithdrawal` of.
    @inline(__always)
    private func beginWithdrawal() -> PromiseCore? {
        let word = sourceWord.load()
        // Retained before the node withdraws: afterwards nothing keeps the source alive on its behalf. A source that settles
        // between the load and this is kept alive by the reference that it delivers to the waiter.
        guard let source = word.source, sourceWord.replace(word, by: .taken) else { return nil }
        leaveCrossThreadWaiters()
        return source
    }

    /// Withdraws this waiter, and drops its operation.
    @discardableResult
    func withdraw() -> PromiseCore? {
        guard let source = beginWithdrawal() else { return nil }
        dropTakenOperation()
        stopCounting()
        source.noteWithdrawal()
        return source
    }

    /// Leaves the source, which continues. The operation receives the cancellation in place of the outcome, in a job; an
    /// operation without a loop, and the node of a combinator, at once.
    func leaveSource(for cancellation: PromiseCore = .plainlyCancelled) {
        if role.contains(.isNotifiedOfDrop) {
            // A combinator's: it only counts that no outcome will come.
            withdraw()
        } else if let source = beginWithdrawal() {
            moveOperation(receiving: cancellation)
            stopCounting()
            // Last, since it may run user code.
            source.noteWithdrawal()
        } else if loop != nil {
            // It is queued, or in the mail. (Without a loop it has run, or is about to, on the thread that has settled the
            // source.)
            receiveCancellation(cancellation)
        }
    }

    /// Moves the operation to another core, which is queued with the cancellation as the outcome of its source. That core
    /// is linked to this one, as if an operation here had returned it: the node of this one is still in a list.
    private func moveOperation(receiving cancellation: PromiseCore) {
        let operation = PromiseCore(operationOf: self)
        _ = operation.link(to: root, from: .pending)
        operation.sourceWord.store(.settled(CoreRef.retaining(cancellation).address, as: .rejected))
        operation.retain()
        guard let loop else { return EventLoop.ofCurrentThread.jobs.runInline(operation.ref.job) }
        operation.marks.insert(.countsAsWaiting)
        loop.borrow {
            $0.handlerDidAttach()
            $0.enqueueOwned(operation.ref.job)
        }
    }

    /// Replaces the outcome of the source with a cancellation, for a core that is queued to receive it. An observer
    /// receives the outcome, which may be a resource that nothing else would release, and ends with the cancellation.
    func receiveCancellation(_ cancellation: PromiseCore = .plainlyCancelled) {
        let word = sourceWord.load()
        guard word.mark == .fulfilled || word.mark == .rejected else { return }
        // It has arrived, and tells where it comes from.
        if word.mark == .rejected, word.core.payload.error as? PromiseError == .cancelled { return }
        if role.contains(.observes) {
            let dropped = rejectAfterSource(with: cancellation.payload.error)
            assert(dropped == nil, "an observer runs, and waits for nothing after that")
        } else {
            replaceOutcome(by: cancellation)
        }
    }

    private func replaceOutcome(by cancellation: PromiseCore) {
        let word = sourceWord.load()
        sourceWord.store(.settled(CoreRef.retaining(cancellation).address, as: .rejected))
        word.release()
    }

    // MARK: Rejected after the source

    /// Makes this core, which has a source or its outcome, reject with `error` when the source has settled. Its operation
    /// still runs, unless it only passes an outcome on, or is dropped when cancelled.
    /// - Returns: an operation that will not run, for the caller to release.
    func rejectAfterSource(with error: any Error) -> PromiseCore? {
        if marks.contains(.willBeRejected) { return nil }
        // It moves to a new core, which no other code refers to. The next step takes its place here.
        let operation = PromiseCore(operationOf: self)
        let isDropped = operation.marks.contains(.hasNextStep) || !role.isDisjoint(with: .droppedByCancellation)
        if isDropped { continueBy { $0.finishRejected(with: error) } } else { rejectAfter(operation, with: error) }
        marks.insert(.willBeRejected)
        return isDropped ? operation : nil
    }

    /// Makes `operation` of this core run when the source has settled, and its result not count. The source appears to it
    /// as cancelled. An observer sees an outcome that has arrived already, or else `error`.
    private func rejectAfter(_ operation: PromiseCore, with error: any Error) {
        let received: PromiseCore? =
            if !role.contains(.observes) {
                .plainlyCancelled
            } else if sourceWord.load().isWaiting {
                .cancelled(with: error)
            } else { nil }
        continueBy { core in
            if let received { core.replaceOutcome(by: received) }
            operation.sourceWord.store(core.sourceWord.takeOut())
            operation.retain()
            operation.runAndRelease()
            core.finish(throwing: error, after: operation)
        }
    }

    /// Rejects this core once `operation`, which has run, has settled. Consumes a reference to this core.
    private func finish(throwing error: any Error, after operation: PromiseCore) {
        // Nobody wants the promise that the operation has returned, but its clean-ups must end first. If the operation has
        // returned this promise, it leaves it.
        operation.cancelUnlessWanted()
        if operation.settled != nil || !isOpen {
            operation.markHandled()
            return finish(throwing: error)
        }
        wait(for: operation) { $0.finishRejected(with: error) }
    }

    /// Rejects this core, whatever its source's outcome.
    private func finishRejected(with error: any Error) {
        sourceWord.takeOut().release()
        finish(throwing: error)
    }

    // MARK: The error

    /// A core rejected by a cancellation, as a source.
    package static func cancelled(with error: any Error) -> PromiseCore {
        let core = PromiseCore(error: error)
        core.markHandled()
        core.annotate(.isDecidedByCancellation)
        return core
    }

    package static let plainlyCancelled = cancelled(with: PromiseError.asCancellation)
}
