import Reactor

/// Searches for the handler on this thread's stack, or the job in a pool's queue, that a promise waits for.
struct StackSearch {
    /// The pool to search, or `nil` for the stack.
    private let pool: ObjectIdentifier?
    /// The maximum number of further cores to visit; beyond it the answer is `false`.
    private var limit = 1000

    /// Whether a handler that is running further down this thread's stack must return before `core` can settle; or, of a
    /// pool, whether a job in its queue must run. Without a pool, call it only in a handler: an operation of this thread
    /// that has been taken out, and has not settled its core, is on the stack.
    static func isHeldUp(_ core: PromiseCore, by pool: ThreadPoolWorkers? = nil) -> Bool {
        var search = StackSearch(pool: pool.map { ObjectIdentifier($0) })
        return search.isHeldUp(core, .ofThisThread)
    }

    private mutating func isHeldUp(_ core: PromiseCore, _ here: LoopRef) -> Bool {
        var core = core
        while limit > 0 {
            limit -= 1
            if let pool, core.role.contains(.externallySettled) {
                let (isQueued, source) = core.placeOfJob(in: pool)
                guard let source else { return isQueued }
                // It may have a time limit, or belong to another thread.
                core = source
                continue
            }
            // All other cores are settled by another thread, by a resolver, or by a time limit.
            guard core.loop == here, core.role.isDisjoint(with: [.externallySettled, .hasDeadline]) else {
                return false
            }
            let word = core.upstream.load()
            switch word.mark {
            case .none: return areInputsHeldUp(of: core, here)
            // The source exists as long as this thread does not run its waiter: see `UpstreamWord`.
            case .waiting: core = word.core.object
            case .linkedFrom: core = word.core.object
            // A core that is still counted has been cancelled, and is about to be notified.
            case .taken: return pool == nil && core.settled == nil && !core.marks.contains(.countsAsWaiting)
            case .fulfilled, .rejected: return false
            }
        }
        return false
    }

    /// If all sources of a combinator are needed, one that is held up is enough, unless another one may fail instead;
    /// otherwise, each must be.
    private mutating func areInputsHeldUp(of core: PromiseCore, _ here: LoopRef) -> Bool {
        guard let combinator = core.asCombinator else { return false }
        let inputs = combinator.inputs
        if combinator.needsAllInputs && pool == nil { return inputs.contains { isHeldUp($0, here) } }
        return !inputs.isEmpty && inputs.allSatisfy { isHeldUp($0, here) }
    }
}
