import Reactor

/// A cancellation, in two passes.
///
/// The first one climbs: from the cancelled promise to the promise that it waits for, and so on, as long as no other
/// handler waits there; from a combinator to all its sources. It marks each of them with `isEndingCancelled`, so a
/// promise whose waiters are all marked is no longer wanted. It changes nothing else, and runs no user code.
///
/// The second one ends the marked promises, from below: operations that need not run are dropped, and a promise without
/// a clean-up above it settles at once. The others stay in the lists where they wait, and are rejected after the
/// promise above them, as by any rejection. Only the topmost clean-up leaves its source, and a job runs it.
struct Cancellation {
    /// Clean-ups to run after all other promises have ended.
    private var cleanUps: [CoreRef] = []
    /// Combinators that wait for some of their sources.
    private var combinators: [CombinatorCore] = []
    /// The sources that any thread may settle.
    private var sources: [PromiseCore] = []
    /// Promises that settle after their sources.
    private var settlements: [(source: PromiseCore, settle: () -> Void)] = []

    /// Cancels `core`. On any thread; promises of another thread's loop are cancelled there, later.
    static func cancel(_ core: PromiseCore, _ request: CancellationRequest) {
        var cancellation = Cancellation()
        cancellation.cancelRows(from: core, request)
        var next = 0
        while next < cancellation.sources.count {
            cancellation.cancelRows(from: cancellation.sources[next], .unobserved)
            next += 1
        }
        for (source, settle) in cancellation.settlements.reversed() {
            if source.isEndingLater { source.whenEnded(settle) } else { settle() }
        }
    }

    private mutating func cancelRows(from core: PromiseCore, _ request: CancellationRequest) {
        let chain = Row(from: core.ref, below: nil, isWanted: request.sparesWanted ? nil : false, startedAt: nil)
        if chain.combinator == nil {
            end(chain, request)
        } else {
            for (index, row) in Rows.from(chain).enumerated() { end(row, index == 0 ? request : .unobserved) }
        }
        // Last, as a rejection reaches them: after the hooks of the work above.
        for cleanUp in cleanUps { EventLoop.ofCurrentThread.enqueueOwned(cleanUp.job) }
        cleanUps = []
        // The upper ones come first.
        while let combinator = combinators.popLast() { combinator.leaveInputsThatGoOn() }
    }

    // MARK: The second pass

    private mutating func end(_ row: Row, _ request: CancellationRequest) {
        var next: PromiseCore? = row.first
        for index in 0..<row.height {
            guard let core = next else { return }
            let request = index == 0 ? request : .unobserved
            let isLater = index < row.later && !request.isOutOfTime
            let isLast = isLater && index == row.later - 1 && !row.isBehind
            next = end(core, request, isLast: isLast, isBehind: isLater && !isLast)
        }
        // The handler that has kept it alive may belong to another thread, which has withdrawn it meanwhile, having seen the
        // waiter of this row. Both look again after they have withdrawn.
        if row.isBelowShared, let next, next.role.contains(.externallySettled), !next.isWanted { sources.append(next) }
    }

    /// Ends one promise.
    /// - Parameters:
    ///   - isLast: whether it is the topmost one that does not settle at once.
    ///   - isBehind: whether the promise that it waits for does not settle at once.
    /// - Returns: its source.
    private mutating func end(
        _ core: PromiseCore, _ request: CancellationRequest, isLast: Bool, isBehind: Bool
    ) -> PromiseCore? {
        if core.role.contains(.externallySettled) {
            endExternally(core, request)
            return nil
        }
        guard core.state.load().isClaimable, let loop = core.loop else { return nil }
        guard loop == .ofThisThread else {
            // While it is pending, its loop still exists.
            loop.post(InternalJob { core.cancel(request) }) { core.state.load().isClaimable }
            return nil
        }
        // The promise that a handler has returned settles this core.
        let producer = core.settlingCore
        guard producer.marks.contains(.isEndingCancelled) else {
            // Code that has run meanwhile has turned the loop, and a handler has returned this promise.
            core.cancelIfUnobserved()
            return nil
        }
        if isLast, let combinator = producer.asCombinator {
            combinator.endWithInputs(by: request)
            combinators.append(combinator)
            return nil
        }
        if isBehind {
            let word = producer.upstream.load()
            let source = word.isWaiting ? word.core.object : nil
            if producer.mustRun {
                producer.runAndReject(with: request.error)
            } else {
                producer.rejectWhenRun(with: request.error)
            }
            return source
        }
        if producer.isShieldedFromSource {
            // It waits for a clean-up that has begun.
            producer.rejectWhenRun(with: request.error)
            return nil
        }
        guard producer.isToRun else { return endAtOnce(core, producer, request) }
        let (cleanUp, source) = producer.leaveSourceAndRun(with: request.error)
        if let cleanUp { cleanUps.append(cleanUp) }
        return source
    }

    private func endAtOnce(
        _ core: PromiseCore, _ producer: PromiseCore, _ request: CancellationRequest
    ) -> PromiseCore? {
        var source: PromiseCore?
        switch producer.upstream.load() {
        case .none:
            // There is no operation, but a producer that would settle the core.
            if producer.cancelProducer() { break }
            producer.marks.remove(.isEndingCancelled)
            return nil
        // It is running.
        case .taken: break
        default: source = producer.leaveSource()
        }
        // The producer may be running right now, and end later.
        if producer !== core { producer.state.markClaimed() }
        // Code that ran when the operation was destroyed may have settled this core first.
        if core.isOpen && core.settled == nil { core.reject(by: request, at: nil) }
        return source
    }

    /// Ends a promise that any thread may settle. The climb cannot pass through it: its source, if it has one, comes
    /// later; see `cancel(_:andThen:)`.
    private mutating func endExternally(_ core: PromiseCore, _ request: CancellationRequest) {
        guard !request.sparesWanted || !core.isWanted else { return }
        core.cancelExternally(with: request.error, in: &self)
    }

    /// Cancels `source` later, unless another handler waits for it, and calls `settle` when it has ended.
    mutating func cancel(_ source: PromiseCore, andThen settle: @escaping () -> Void) {
        sources.append(source)
        settlements.append((source, settle))
    }
}
