import Reactor
import Synchronization

// How a promise is cancelled.
//
// An operation belongs to one thread and is cancelled there; an externally settled promise is cancelled on any thread
// that could settle it. A waiter that is withdrawn loses its operation at once, but its node stays in the source's list
// until that is swept or delivered: other threads may be pushing onto it.

extension PromiseCore {
    /// Rejects this core with `error`, or with `PromiseError.cancelled`, and ends the work that would have settled it.
    /// The promise that it waits for is cancelled too, if it has no other waiters. If the core has settled, nothing
    /// happens.
    ///
    /// Any thread; a core that belongs to another thread is cancelled there, later.
    func cancel(with error: (any Error)? = nil) { cancel(.itself(error)) }

    func cancel(_ request: CancellationRequest) {
        var climb = CancellationClimb(from: self, request)
        climb.cancel(self, request)
    }

    /// Cancels a promise that its holder no longer needs, unless another handler waits for it. Any thread.
    func cancelIfUnobserved() { cancel(.unobserved) }

    /// Cancels one of several promises that are no longer needed, unless another handler waits for it. On this thread
    /// one cancellation runs after the other, never inside the other, since combinators nest.
    /// - Parameter climb: what is known of the clean-ups above.
    func enqueueCancel(_ climb: CancellationClimb) {
        InternalJob.runInline { [self] in
            var climb = climb
            climb.cancel(self, .unobserved)
        }
    }

    /// The core whose operation settles this one: itself, or the core that a handler has returned and that is linked to it.
    var settlingCore: PromiseCore {
        let word = upstream.load()
        return word.isLinkedFrom ? word.core.object : self
    }

    // MARK: The producer

    /// Ends the producer of this core, on the core's own thread, without waiting for a clean-up.
    func stop() -> ProducerStop {
        var climb = CancellationClimb()
        return stop(with: nil, &climb)
    }

    /// What the end of the producer begins with.
    private enum StopAction {
        /// It has ended, or is about to.
        case none(ProducerStop)
        /// There is no operation, but something else that would settle the core.
        case stopProducer
        /// Its source is to be left.
        case withdraw(from: PromiseCore)
        /// Its source has settled, perhaps on another thread, and it is scheduled to run.
        case unschedule
        /// It waits for a clean-up that has begun.
        case rejectBehindSource
    }

    private func stopAction(_ word: UpstreamWord) -> StopAction {
        if marks.contains(.isEndingCancelled) { return .none(.willEnd(nil)) }
        if word == .none { return .stopProducer }
        if word == .taken { return .none(.stopped(nil)) }
        guard word.isWaiting else { return .unschedule }
        if isShielding { return .rejectBehindSource }
        // Retained before the node withdraws: afterwards nothing keeps the source alive on its behalf.
        return .withdraw(from: word.core.object)
    }

    /// Ends the producer of this core, on the core's own thread.
    func stop(with error: (any Error)?, _ climb: inout CancellationClimb) -> ProducerStop {
        let word = upstream.load()
        switch stopAction(word) {
        case .none(let stopping): return stopping
        case .stopProducer:
            if climb.position == .last && isCombinator {
                cancelInputsFirst(with: error, climb)
                return .willEnd(nil)
            }
            return cancelProducer() ? .stopped(nil) : .refused
        case .rejectBehindSource:
            rejectWhenRun(with: error)
            return .willEnd(nil)
        case .withdraw(let source) where upstream.replace(word, by: .taken):
            return didWithdraw(from: source, with: error, &climb)
        case .withdraw, .unschedule: return unschedule(with: error)
        }
    }

    /// Whether the operation must run in any case, and has not run.
    var mustRun: Bool { role.contains(.runsWhenCancelled) && !marks.contains(.isAdopting) }

    /// Whether a cancellation ends here, and rejects this core when its source has settled.
    var isShielding: Bool { role.contains(.shielding) && !marks.contains(.isAdopting) }

    private func didWithdraw(
        from source: PromiseCore, with error: (any Error)?, _ climb: inout CancellationClimb
    ) -> ProducerStop {
        hasArrived()
        defer { source.noteWithdrawal() }
        let isBehind = climb.position == .behind
        guard mustRun || isBehind else {
            destroyOperation()
            waitsNoMore()
            return .stopped(source)
        }
        if mustRun { marks.insert(.isEndingCancelled) } else { rejectWhenRun(with: error) }
        let run = CancelledRun(self, error)
        if isBehind { run.wait(for: source) } else { climb.runLast(run) }
        return .willEnd(source)
    }

    /// Its source has settled. The operation is dropped; or, if it must run, the core is rejected afterwards.
    private func unschedule(with error: (any Error)?) -> ProducerStop {
        guard mustRun else {
            dropOperation()
            waitsNoMore()
            return .stopped(nil)
        }
        marks.insert(.isEndingCancelled)
        runAndReject(with: error)
        return .willEnd(nil)
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

    // MARK: Rejecting later

    /// Makes this core, which loses its operation, reject when it runs.
    private func rejectWhenRun(with error: (any Error)?) {
        marks.insert(.isEndingCancelled)
        destroyOperation()
        continueBy(.rejection(with: error))
    }

    /// For a core whose source has settled: its operation still runs with that outcome, and the core is rejected once
    /// the operation has ended, whatever its result.
    private func runAndReject(with error: (any Error)?) {
        // The operation moves to a core of its own, which no other code refers to. The closure below takes its place
        // here.
        let operation = PromiseCore(operationOf: self)
        continueBy(
            AfterOperation { core, _ in
                operation.upstream.store(core.upstream.takeOut())
                operation.retain()
                operation.runAndRelease()
                core.reject(with: error, after: operation)
            })
    }

    /// Rejects this core once `operation` has settled. Consumes a reference to this core.
    private func reject(with error: (any Error)?, after operation: PromiseCore) {
        if let outcome = operation.settled {
            outcome.reference.borrow { $0.markHandled() }
            return finish(throwing: CancellationRequest.itself(error).rejection)
        }
        continueBy(.rejection(with: error))
        operation.attach(self)
        release()
    }
}

extension AfterOperation {
    /// Rejects a cancelled core, whatever the outcome of its source is.
    fileprivate static func rejection(with error: (any Error)?) -> AfterOperation {
        AfterOperation { core, _ in
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
    /// A core that takes over the operation of another core, whose payload must then be stored anew.
    fileprivate convenience init(operationOf other: PromiseCore) {
        self.init(state: .pending, loop: other.loop, code: other.code)
        payload.move(from: other.payload)
    }

    /// A core that was rejected by a cancellation, in place of a source.
    static func cancelled(with error: (any Error)?) -> PromiseCore {
        guard let error else { return plainlyCancelled }
        let core = PromiseCore(error: error)
        core.markHandled()
        return core
    }

    private static let plainlyCancelled = cancelled(with: PromiseError.asCancellation)
}
