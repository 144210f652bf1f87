import Reactor

/// A cancellation: an error that begins at the work.
///
/// It climbs from the cancelled promise to its source, and so on up to the work, as long as no other handler waits for
/// that source. From a combinator it climbs to each source. At the top it stops the work and rejects the work's
/// promise. From there the error travels like any other, because each promise below is still a waiter of the promise
/// above.
///
///     work ─▶ map ─▶ ensure ─▶ then ◀─ cancel()
///
/// If the climb cannot continue, the waiter below leaves its source and receives the cancellation as if the source
/// had been rejected (`leaveSource`). The climb cannot enter a promise that
/// - another handler waits for, even if a later branch of this cancellation reaches that handler;
/// - has work that cannot be stopped, or that another thread is about to settle;
/// - another cancellation is stopping, or whose operation another cancellation runs (`willBeRejected`);
/// - belongs to another thread's loop: `leave` posts the rest of the climb there;
/// - is the cancelled promise itself, in a circle.
///
/// A branch ends at a settled source: the queued promise below receives the cancellation in place of the outcome. A
/// promise whose operation is running is rejected at once.
struct Cancellation {
    /// The result of stopping one promise.
    enum Step {
        /// The promise has been rejected, or will be when its clean-ups or its work have ended.
        case stopped
        /// The promise stays as it is.
        case cannotStop
        /// The climb continues at the source `to`. `over` waits in its list, on behalf of the promise `of`.
        case climb(to: PromiseCore, over: PromiseCore, of: PromiseCore)
    }

    private enum Branch {
        /// A source of a combinator, and the combinator's waiter there.
        case input(PromiseCore, over: PromiseCore)
        /// The end of a combinator, whose sources have been cancelled.
        case end(CombinatorCore)
    }

    /// The cancelled promise. The climb reaches no other promise twice, since it enters a promise only from its sole
    /// waiter that counts.
    private let start: PromiseCore
    /// The branches still to climb; the next one is last.
    private var branches: [Branch] = []
    /// Operations that will not run. They are dropped after the climb, because dropping them runs user code, which may
    /// change promises on the path.
    private var dropped: [PromiseCore] = []

    private init(_ start: PromiseCore) { self.start = start }

    /// Cancels `core`, even if handlers wait for it. May be called on any thread; another thread's promise is cancelled
    /// there, later.
    /// - Parameter error: the error for `core` in place of `PromiseError.cancelled`; ignored if `core` was cancelled
    ///   before.
    static func cancel(_ core: PromiseCore, with error: (any Error)?) {
        guard core.isHere else { return core.postCancel(with: error, unlessWanted: false) }
        var cancellation = Cancellation(core)
        cancellation.climb(cancellation.stopOrClimb(core, with: error))
        while let branch = cancellation.branches.popLast() {
            switch branch {
            case .input(let source, let node):
                // Code that ran after the branch was added may have withdrawn the node.
                if node.waits(for: source) { cancellation.climb(.climb(to: source, over: node, of: node)) }
            case .end(let combinator): combinator.inputDidEnd()
            }
        }
        withExtendedLifetime(cancellation.dropped) {}
    }

    /// Climbs from `step` to the end of its branch. User code may run on the way: `conf.logHandler` (see
    /// `isWanted`), closures that end the work, and the `deinit`s of what is dropped.
    private mutating func climb(_ step: Step) {
        var step = step
        while case .climb(let core, let waiter, let below) = step {
            let isReached = core !== start && core.isHere && !core.isWanted(besides: waiter)
            step = isReached ? stopOrClimb(core, with: nil) : .cannotStop
            // Another cancellation that has claimed `core` rejects it after its clean-ups.
            if case .cannotStop = step, !core.isDecidedByCancellation {
                leave(core, by: waiter)
            } else {
                below.cancellationDidClimb(over: waiter)
            }
        }
    }

    /// Detaches `waiter` from `core`, where the climb stops.
    private func leave(_ core: PromiseCore, by waiter: PromiseCore) {
        waiter.leaveSource()
        // For another thread's promise, this call continues the climb there. From an externally settled one, two
        // threads may leave at the same time, because each saw the other's waiter. So each checks again after
        // withdrawing.
        if core !== start && (core.role.contains(.externallySettled) || !core.isHere) { core.cancelUnlessWanted() }
    }

    private mutating func stopOrClimb(_ core: PromiseCore, with error: (any Error)?) -> Step {
        if core.role.contains(.externallySettled) { return core.cancelExternally(with: error) }
        // Code that ran during the climb may have settled it.
        guard core.state.load().isClaimable else { return .cannotStop }
        let isFirst = core.marks.insert(.isCancelled).inserted
        let error = isFirst ? error : nil
        let producer = core.settlingCore
        switch producer.sourceWord.load().mark {
        case .waiting, .fulfilled, .rejected: return cancelWaiting(producer, error)
        // Another cancellation is stopping `core`, or running its operation, and will reject it. The waiter below
        // leaves `core`, because that operation may have cancelled the waiter, and may wait for it.
        case _ where producer.marks.contains(.willBeRejected): return .cannotStop
        case .none: return stopWork(of: producer, for: core, error)
        // The operation is running.
        case .taken, .linkedFrom: return reject(core, insteadOf: producer, error)
        }
    }

    /// Cancels a promise that waits for a source, or is queued with its source's outcome.
    private mutating func cancelWaiting(_ producer: PromiseCore, _ error: (any Error)?) -> Step {
        // A dropped operation passes on no error.
        let isDropped = !producer.role.isDisjoint(with: .droppedByCancellation)
        let rejection = error ?? (isDropped ? PromiseError.asCancellation : nil)
        if let rejection, let operation = producer.rejectAfterSource(with: rejection) { dropped.append(operation) }
        // A clean-up in progress must not be stopped.
        if producer.role.contains(.shielding) { return .stopped }
        // One load decides. With two, another thread could settle the source between them, and the cancellation would be
        // lost.
        if let source = producer.sourceWord.load().source { return .climb(to: source, over: producer, of: producer) }
        if rejection == nil { producer.receiveCancellation() }
        return .stopped
    }

    /// Stops the work of a promise whose producer waits for no other promise, and rejects the promise.
    private mutating func stopWork(of producer: PromiseCore, for core: PromiseCore, _ error: (any Error)?) -> Step {
        if let combinator = producer.asCombinator {
            branches.append(.end(combinator))
            for node in combinator.inputs.reversed() {
                if let source = node.sourceWord.load().source { branches.append(.input(source, over: node)) }
            }
            combinator.beginCancelling(with: error)
            return .stopped
        }
        // Dropping the work may run user code, whose cancellations must have no effect.
        producer.marks.insert(.willBeRejected)
        producer.code(producer, .stop)
        let hasStopped = producer.sourceWord.loadRelaxed() == .taken
        // Work that cannot be stopped keeps its own promise pending. If that promise is linked to `core`, nothing else
        // waits for it, and `core` is rejected all the same.
        guard hasStopped || producer !== core else {
            producer.marks.remove(.willBeRejected)
            return .cannotStop
        }
        return reject(core, insteadOf: producer, error)
    }

    /// Rejects `core` now; a later outcome of `producer` is ignored.
    private func reject(_ core: PromiseCore, insteadOf producer: PromiseCore, _ error: (any Error)?) -> Step {
        if producer !== core { producer.state.markClaimed() }
        // Code that ran when an operation was dropped may have settled it.
        if core.state.load().isClaimable { core.rejectCancelled(with: error, at: nil) }
        return .stopped
    }
}

/// A promise's first cancellation, which decides its error.
struct FirstCancellation {
    /// The error that replaces `PromiseError.cancelled`, if any.
    let error: (any Error)?
}

extension PromiseError {
    /// Shared by all cancellations, because each conversion of an enumeration to `any Error` allocates a box, and a
    /// race cancels all promises but one.
    @usableFromInline package static let asCancellation: any Error = PromiseError.cancelled
}
