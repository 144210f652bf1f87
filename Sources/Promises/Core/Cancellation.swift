import Reactor

/// A cancellation: an error that begins at the work.
///
/// It climbs from the cancelled promise to the one that it waits for, and so on up to the work, as long as no other
/// handler waits there; from a combinator to each of its sources. It ends the work, and rejects the promise of the work.
/// From there the error travels as any other: each promise below is a waiter of the one above, and stays one.
///
///     work ─▶ map ─▶ ensure ─▶ then ◀─ cancel()
///
/// If the climb cannot continue, the waiter below leaves its source, and receives the cancellation as if the source
/// had been rejected (`leaveSource`). So it is below a promise that
/// - another handler waits for;
/// - work settles that cannot be stopped, or that another thread is about to settle;
/// - belongs to another thread's loop, where the climb continues later;
/// - is the cancelled one, which waits for itself in a circle.
struct Cancellation {
    /// The result of stopping one promise.
    enum Step {
        /// The promise has been rejected, or will be: when its clean-ups or its work have ended.
        case ended
        /// The promise stays as it is.
        case cannotEnd
        /// The waiter passes the outcome of that source on to the promise: the climb continues there.
        case climb(to: PromiseCore, over: PromiseCore, of: PromiseCore)
    }

    private enum Branch {
        /// A source of a combinator, with the combinator's node.
        case input(PromiseCore, over: PromiseCore)
        /// All sources of that combinator have been cancelled.
        case end(CombinatorCore)
    }

    /// The cancelled promise. No other one can be reached twice: a promise that has been reached has one waiter that
    /// counts, the one that the climb came from.
    private let start: PromiseCore
    /// The rest of the climb, the next branch last.
    private var branches: [Branch] = []
    /// Operations that will not run. Dropped last, since that runs user code, which may change the promises on the way.
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
                // Code that has run meanwhile may have changed that.
                if node.waits(for: source) { cancellation.climb(.climb(to: source, over: node, of: node)) }
            case .end(let combinator): combinator.inputDidEnd()
            }
        }
        withExtendedLifetime(cancellation.dropped) {}
    }

    /// Continues after `step` to the end of a branch. Until there, no user code runs.
    private mutating func climb(_ step: Step) {
        var step = step
        while case .climb(let core, let waiter, let below) = step {
            let isReached = core !== start && core.isHere && !core.isWanted(besides: waiter)
            step = isReached ? stopOrClimb(core, with: nil) : .cannotEnd
            // Another cancellation that has claimed it rejects it after its clean-ups.
            if case .cannotEnd = step, !core.endsCancelled {
                leave(core, waiter)
            } else {
                below.cancellationDidClimb(over: waiter)
            }
        }
    }

    private func leave(_ core: PromiseCore, _ waiter: PromiseCore) {
        waiter.leaveSource()
        // The other handler may belong to another thread, which has withdrawn it meanwhile, having seen this waiter. Both
        // look again after they have withdrawn.
        if core !== start && (core.role.contains(.externallySettled) || !core.isHere) { core.cancelUnlessWanted() }
    }

    private mutating func stopOrClimb(_ core: PromiseCore, with error: (any Error)?) -> Step {
        if core.role.contains(.externallySettled) { return core.cancelExternally(with: error) }
        // Code that has run meanwhile may have settled it.
        guard core.state.load().isClaimable else { return .cannotEnd }
        let isFirst = core.marks.insert(.isCancelled).inserted
        let error = isFirst ? error : nil
        let producer = core.settlingCore
        let word = producer.upstream.load()
        switch word.mark {
        // It is being rejected; what waits for it must not be waited for.
        case .none, .taken, .linkedFrom:
            if producer.marks.contains(.endsRejected) { return .cannotEnd }
            // Otherwise its operation is running.
            if word.mark == .none { return endWork(of: producer, for: core, error) }
            return reject(core, insteadOf: producer, error)
        case .waiting, .fulfilled, .rejected:
            let source = word.source
            let isShielding = producer.role.contains(.shielding)
            let endsNow = isShielding || producer.role.contains(.isDroppedWhenCancelled)
            let rejection = error ?? (endsNow ? PromiseError.asCancellation : nil)
            if let rejection, let operation = producer.endRejected(with: rejection) { dropped.append(operation) }
            if let source { return isShielding ? .ended : .climb(to: source, over: producer, of: producer) }
            if rejection == nil { producer.receiveCancellation() }
            return .ended
        }
    }

    /// Ends a promise whose producer waits for no other promise.
    private mutating func endWork(of producer: PromiseCore, for core: PromiseCore, _ error: (any Error)?) -> Step {
        if let combinator = producer.asCombinator {
            branches.append(.end(combinator))
            for node in combinator.inputs.reversed() {
                if let source = node.upstream.load().source { branches.append(.input(source, over: node)) }
            }
            combinator.beginEnding(with: error)
            return .ended
        }
        // Meanwhile another cancellation has no effect: user code may run when the work is dropped.
        producer.marks.insert(.endsRejected)
        // A linked one that cannot be stopped continues for nobody.
        guard producer.cancelProducer() || producer !== core else {
            producer.marks.remove(.endsRejected)
            return .cannotEnd
        }
        return reject(core, insteadOf: producer, error)
    }

    /// Rejects `core` now. What `producer` brings is too late.
    private func reject(_ core: PromiseCore, insteadOf producer: PromiseCore, _ error: (any Error)?) -> Step {
        if producer !== core { producer.state.markClaimed() }
        // Code that ran when an operation was destroyed may have settled it.
        if core.state.load().isClaimable { core.rejectCancelled(with: error, at: nil) }
        return .ended
    }
}

extension PromiseError {
    /// Shared by all cancellations: each conversion of an enumeration to `any Error` makes a box, and a race cancels
    /// all promises but one.
    @usableFromInline package static let asCancellation: any Error = PromiseError.cancelled
}
