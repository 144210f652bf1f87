import Reactor

/// A cancellation: an error that begins at the work.
///
/// It climbs from the cancelled promise to its source, and so on up to the work, as long as no other handler waits there.
/// From a combinator it climbs to each source. It stops the work, and rejects the promise of the work. From there the
/// error travels as any other: each promise below is a waiter of the promise above, and stays its waiter.
///
///     work ─▶ map ─▶ ensure ─▶ then ◀─ cancel()
///
/// If the climb cannot continue, the waiter below leaves its source and receives the cancellation as if the source
/// had been rejected (`leaveSource`). The climb cannot enter a promise that
/// - another handler waits for, even one that a later branch of this cancellation reaches;
/// - work settles that cannot be stopped, or that another thread is about to settle;
/// - another cancellation is stopping, or whose operation runs for one (`willBeRejected`);
/// - belongs to another thread's loop: `leave` posts the rest of the climb there;
/// - is the cancelled one, which waits for itself in a circle.
///
/// A branch ends below a settled source: the promise there, which is queued, receives the cancellation in place of the
/// outcome. A promise whose operation is running is rejected at once.
struct Cancellation {
    /// The result of stopping one promise.
    enum Step {
        /// The promise has been rejected, or will be when its clean-ups or its work have ended.
        case stopped
        /// The promise stays as it is.
        case cannotStop
        /// The climb continues at the source, in whose list `over` waits on behalf of the promise `of`.
        case climb(to: PromiseCore, over: PromiseCore, of: PromiseCore)
    }

    private enum Branch {
        /// A source of a combinator, and the combinator's waiter there.
        case input(PromiseCore, over: PromiseCore)
        /// The end of a combinator, whose sources have been cancelled.
        case end(CombinatorCore)
    }

    /// The cancelled promise. The climb reaches no other promise twice, since it enters a promise only over its one
    /// waiter that counts.
    private let start: PromiseCore
    /// The rest of the climb, the next branch last.
    private var branches: [Branch] = []
    /// Operations that will not run. They are dropped last: that runs user code, which may change the promises on the
    /// way.
    private var dropped: [PromiseCore] = []

    private init(_ start: PromiseCore) { self.start = start }

    /// Cancels `core`, even if handlers wait for it. Any thread; a promise of another thread's loop is cancelled there,
    /// later.
    /// - Parameter error: rejects `core`, in place of `PromiseError.cancelled`, unless it has been cancelled before.
    static func cancel(_ core: PromiseCore, with error: (any Error)?) {
        guard core.isHere else { return core.postCancel(with: error, unlessWanted: false) }
        var cancellation = Cancellation(core)
        cancellation.climb(cancellation.stopOrClimb(core, with: error))
        while let branch = cancellation.branches.popLast() {
            switch branch {
            case .input(let source, let node):
                // Code that has run since then may have withdrawn the node.
                if node.waits(for: source) { cancellation.climb(.climb(to: source, over: node, of: node)) }
            case .end(let combinator): combinator.inputDidEnd()
            }
        }
        withExtendedLifetime(cancellation.dropped) {}
    }

    /// Continues after `step` to the end of a branch. Until there, no user code runs but `conf.logHandler`; see
    /// `isWanted`.
    private mutating func climb(_ step: Step) {
        var step = step
        while case .climb(let core, let waiter, let below) = step {
            let isReached = core !== start && core.isHere && !core.isWanted(besides: waiter)
            step = isReached ? stopOrClimb(core, with: nil) : .cannotStop
            // Another cancellation that has claimed it rejects it after its clean-ups.
            if case .cannotStop = step, !core.isDecidedByCancellation {
                leave(core, by: waiter)
            } else {
                below.cancellationDidClimb(over: waiter)
            }
        }
    }

    /// Detaches `waiter`, over which the climb came, from `core`, where the climb stops.
    private func leave(_ core: PromiseCore, by waiter: PromiseCore) {
        waiter.leaveSource()
        // Another thread's promise: this is how the climb continues there. An externally settled one: another thread may
        // have left it at the same time, since each saw the other's waiter. So both look again after they have withdrawn.
        if core !== start && (core.role.contains(.externallySettled) || !core.isHere) { core.cancelUnlessWanted() }
    }

    private mutating func stopOrClimb(_ core: PromiseCore, with error: (any Error)?) -> Step {
        if core.role.contains(.externallySettled) { return core.cancelExternally(with: error) }
        // Code that has run since the climb began may have settled it.
        guard core.state.load().isClaimable else { return .cannotStop }
        let isFirst = core.marks.insert(.isCancelled).inserted
        let error = isFirst ? error : nil
        let producer = core.settlingCore
        switch producer.sourceWord.load().mark {
        case .waiting, .fulfilled, .rejected: return cancelWaiting(producer, error)
        // Another cancellation is stopping it, or its operation runs for one, which rejects it afterwards. The waiter below
        // leaves: that operation may be what has cancelled it, and may wait for it.
        case _ where producer.marks.contains(.willBeRejected): return .cannotStop
        case .none: return stopWork(of: producer, for: core, error)
        // The operation is running.
        case .taken, .linkedFrom: return reject(core, insteadOf: producer, error)
        }
    }

    /// Cancels a promise that waits for a source, or is queued with the outcome of one.
    private mutating func cancelWaiting(_ producer: PromiseCore, _ error: (any Error)?) -> Step {
        // A dropped operation brings no outcome.
        let isDropped = !producer.role.isDisjoint(with: .droppedByCancellation)
        let rejection = error ?? (isDropped ? PromiseError.asCancellation : nil)
        if let rejection, let operation = producer.rejectAfterSource(with: rejection) { dropped.append(operation) }
        // A clean-up in progress must end.
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
        // Meanwhile another cancellation has no effect: user code may run when the work is dropped.
        producer.marks.insert(.willBeRejected)
        producer.code(producer, .stop)
        let hasStopped = producer.sourceWord.loadRelaxed() == .taken
        // Work that cannot be stopped keeps its own promise pending. If that is only linked to `core`, nobody else waits
        // for it, and `core` is rejected all the same.
        guard hasStopped || producer !== core else {
            producer.marks.remove(.willBeRejected)
            return .cannotStop
        }
        return reject(core, insteadOf: producer, error)
    }

    /// Rejects `core` now. The outcome of `producer` comes too late.
    private func reject(_ core: PromiseCore, insteadOf producer: PromiseCore, _ error: (any Error)?) -> Step {
        if producer !== core { producer.state.markClaimed() }
        // Code that ran when an operation was dropped may have settled it.
        if core.state.load().isClaimable { core.rejectCancelled(with: error, at: nil) }
        return .stopped
    }
}

/// The cancellation that decides a promise's error: the first one.
struct FirstCancellation {
    /// An error in place of `PromiseError.cancelled`.
    let error: (any Error)?
}

extension PromiseError {
    /// Shared by all cancellations: each conversion of an enumeration to `any Error` makes a box, and a race cancels
    /// all promises but one.
    @usableFromInline package static let asCancellation: any Error = PromiseError.cancelled
}
