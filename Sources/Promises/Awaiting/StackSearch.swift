import Reactor

/// Searches for what a promise waits for: a handler on this thread's stack, or a job in a pool's queue.
struct StackSearch {
    /// The pool to search; `nil` for the stack.
    private let pool: ObjectIdentifier?
    /// Cores that may still be visited. At zero, the answer is `false`.
    private var limit = 1000

    /// Returns true if a handler further down this thread's stack must return before `core` can settle; with `pool`, if
    /// a job in the pool's queue must run. Without a pool, call it only in a handler: an operation of this thread that
    /// has been taken out, and has not settled its core, is then on the stack.
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
                core = source
                continue
            }
            // Another thread, a resolver or a time limit settles all other cores.
            guard core.loop == here, core.role.isDisjoint(with: [.externallySettled, .hasDeadline]) else {
                return false
            }
            let word = core.sourceWord.load()
            switch word.mark {
            case .none: return areInputsHeldUp(of: core, here)
            // The source exists while this thread does not run the source's waiter: see `SourceWord`.
            case .waiting: core = word.core.object
            case .linkedFrom: core = word.core.object
            // A core that is still counted has been cancelled, and is about to be notified.
            case .taken: return pool == nil && core.settled == nil && !core.marks.contains(.countsAsWaiting)
            case .fulfilled, .rejected: return false
            }
        }
        return false
    }

    /// For a combinator that needs all its sources, returns true if one source is held up and no other may fail first.
    /// For other combinators, returns true if each source is held up.
    private mutating func areInputsHeldUp(of core: PromiseCore, _ here: LoopRef) -> Bool {
        guard let combinator = core.asCombinator else { return false }
        let inputs = combinator.inputs
        if combinator.needsAllInputs && pool == nil { return inputs.contains { isHeldUp($0, here) } }
        return !inputs.isEmpty && inputs.allSatisfy { isHeldUp($0, here) }
    }
}
