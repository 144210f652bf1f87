import Reactor
import ReactorLibc

// The steps of a cancellation within one promise; see `Cancellation`.

extension PromiseCore {
    /// Stops the work above this core, and rejects the work's promise with `PromiseError.cancelled`; see
    /// `Cancellation`. This core is in the end rejected with `error`, if given. Has no effect on a settled core.
    ///
    /// May be called on any thread; another thread's core is cancelled there, later.
    package func cancel(with error: (any Error)? = nil) { Cancellation.cancel(self, with: error) }

    /// Cancels a promise that its holder no longer needs, unless another handler waits for it. May be called on any
    /// thread.
    func cancelUnlessWanted() {
        if !isHere { postCancel(with: nil, unlessWanted: true) } else if !isWanted(besides: nil) { cancel() }
    }

    /// Rejects this waiting core with `error`, in a job, without waiting for its source, and cancels the source unless
    /// another handler waits for it. If the core has been cancelled before, that cancellation's error rejects it.
    /// Called on the core's thread.
    package func cancelNow(with error: any Error) {
        guard let source = sourceWord.load().source else { return }
        leaveSource(for: marks.contains(.isCancelled) ? .plainlyCancelled : .cancelled(with: error))
        source.cancelUnlessWanted()
    }

    package func rejectCancelled(with error: (any Error)?, at callSite: CallSite?) {
        // An unhandled cancellation is not reported; the mark saves the core's deinit from examining the error.
        reject(error ?? PromiseError.asCancellation, at: callSite, as: error == nil ? .rejectedAndHandled : .rejected)
    }

    // MARK: Questions

    /// True when this thread may end the core: any thread if externally settled, otherwise its loop's thread, until the
    /// loop ends.
    var isHere: Bool {
        if role.contains(.externallySettled) { return true }
        guard let here = LoopRef.ofThisThreadIfAny, loop == here else { return false }
        return here.borrow { !$0.hasEnded }
    }

    /// True when a cancellation has reached this promise of this thread; its operation then begins no more work.
    @usableFromInline
    var hasBeenCancelled: Bool { settled != nil || root.marks.contains(.isCancelled) }

    /// The core whose operation settles this one: itself, or the core that a handler has returned, which is linked to
    /// this one. One step leads there, because a link leads to the last root, and `didLink` copies the linked core's
    /// own note.
    var settlingCore: PromiseCore {
        let word = sourceWord.load()
        return word.isLinkedFrom ? word.core.object : self
    }

    func waits(for source: PromiseCore) -> Bool { sourceWord.load() == .waiting(forCoreAt: source.address) }

    /// Calls `body` when this core has settled, on the settling thread. Keeps no work alive, but handles a rejection.
    package func whenSettled(_ body: @escaping () -> Void) {
        attach(PromiseCore(inline: Notification { _ in body() }, role: .keepsNoWorkAlive))
    }

    // MARK: Externally settled promises, on any thread

    /// Claims the promise for a cancellation, which must then reject it.
    /// - Returns: the locked list of its waiters; `nil` if the promise has settled, or another party has claimed it. A
    ///   clean-up pushed after the lock runs only when the promise is rejected.
    func claimForCancellation() -> LockedWaiters? {
        guard let waiters = LockedWaiters(of: self), claim() else { return nil }
        annotate(.isDecidedByCancellation)
        return waiters
    }

    /// True when a cancellation decides the outcome of this externally settled promise.
    package var isDecidedByCancellation: Bool {
        guard role.contains(.externallySettled) else { return false }
        // The claiming thread may be about to annotate or reject it.
        while case let seen = state.load(), seen.isPending && !seen.isClaimable && seen.isLocked { sched_yield() }
        return has(.isDecidedByCancellation)
    }

    // MARK: Another thread's promises

    /// Cancels a promise on the thread of its loop, unless it has settled by then.
    func postCancel(with error: (any Error)?, unlessWanted: Bool) {
        // If not, this thread's own loop has ended, with its promises; or the promise has settled and has no loop.
        guard let loop, loop != LoopRef.ofThisThreadIfAny else { return }
        // A loop that has ended refuses the job. It has ended its promises itself, except those that wait in a circle.
        loop.borrow {
            _ = $0.post(InternalJob { [self] in unlessWanted ? cancelUnlessWanted() : cancel(with: error) })
        }
    }

    // MARK: Leaving the source, on the core's own thread

    /// Withdraws this waiter, whose operation the caller must then take out. Has no effect if the source has settled,
    /// perhaps on another thread: the waiter has run, or is about to. The caller must hold the source if another thread
    /// may run the waiter (one without a loop), or may take it without a reference (one of a `hang`).
    ///
    /// The node stays in the source's list, as a tombstone, until the list is swept or delivered, because other threads
    /// may be pushing onto it.
    /// - Returns: the source, on which the caller must call `noteWithdrawal`; `nil` if it has settled.
    @inline(__always)
    private func beginWithdrawal() -> PromiseCore? {
        let word = sourceWord.load()
        // Retained before the node withdraws, since afterwards nothing keeps the source alive on its behalf. If the
        // source settles after the load, the reference that it delivers to the waiter keeps it alive.
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

    /// Leaves the source, which continues. The operation receives the cancellation in place of the outcome: in a job,
    /// or at once if it has no loop or the node is a combinator's.
    func leaveSource(for cancellation: PromiseCore = .plainlyCancelled) {
        if role.contains(.isNotifiedOfDrop) {
            // A combinator only counts that no outcome will come.
            withdraw()
        } else if let source = beginWithdrawal() {
            moveOperation(receiving: cancellation)
            stopCounting()
            // Last, since it may run user code.
            source.noteWithdrawal()
        } else if loop != nil {
            // The node is queued, or in the mail. (Without a loop it has run, or is about to, on the thread that
            // settled the source.)
            receiveCancellation(cancellation)
        }
    }

    /// Moves the operation to another core, because this one is still in a list, and queues that core with the
    /// cancellation as its source's outcome. It is linked to this core, as if an operation here had returned it.
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

    /// Replaces the source's outcome with a cancellation, for a queued core. An observer still receives the outcome,
    /// which may be a resource that nothing else would release, and is then rejected by the cancellation.
    func receiveCancellation(_ cancellation: PromiseCore = .plainlyCancelled) {
        let word = sourceWord.load()
        guard word.mark == .fulfilled || word.mark == .rejected else { return }
        // A cancellation has arrived already, with its origin.
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

    /// Makes this core, which has a source or its outcome, reject with `error` when the source has settled. The
    /// operation still runs, unless it only passes an outcome on, or is dropped when cancelled.
    /// - Returns: an operation that will not run, for the caller to release.
    func rejectAfterSource(with error: any Error) -> PromiseCore? {
        if marks.contains(.willBeRejected) { return nil }
        // The operation moves to a new core, which no other code refers to. The next step takes its place here.
        let operation = PromiseCore(operationOf: self)
        let isDropped = operation.marks.contains(.hasNextStep) || !role.isDisjoint(with: .droppedByCancellation)
        if isDropped { continueBy { $0.finishRejected(with: error) } } else { rejectAfter(operation, with: error) }
        marks.insert(.willBeRejected)
        return isDropped ? operation : nil
    }

    /// Makes `operation`, taken from this core, run when the source has settled, and ignores its result. To the
    /// operation the source appears cancelled; an observer receives the outcome if it has arrived, or else `error`.
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
        // Nobody wants the promise that the operation has returned, but its clean-ups must end first. If that is this
        // core's own promise, the operation leaves it.
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

    /// Makes a core rejected by a cancellation, to serve as a source.
    package static func cancelled(with error: any Error) -> PromiseCore {
        let core = PromiseCore(error: error)
        core.markHandled()
        core.annotate(.isDecidedByCancellation)
        return core
    }

    package static let plainlyCancelled = cancelled(with: PromiseError.asCancellation)
}
