/// The search for a handler on this thread's stack that a promise waits for.
enum StackSearch {
    private static var longestSearch: Int { 1000 }

    /// Whether a handler that is running further down this thread's stack must return before `core` can settle. Call
    /// it only in a handler: an operation of this thread that has been taken out, and has not settled its core, is on
    /// the stack.
    static func isHeldUp(_ core: PromiseCore) -> Bool {
        var limit = longestSearch
        return isHeldUp(core, .ofThisThread, &limit)
    }

    /// Looks at no more than `limit` cores, and returns `false` beyond that.
    private static func isHeldUp(_ core: PromiseCore, _ here: LoopRef, _ limit: inout Int) -> Bool {
        var core = core.root
        while limit > 0 {
            limit -= 1
            // All other cores are settled by another thread, by a resolver, or by a time limit.
            guard core.loop == here, core.role.isDisjoint(with: [.externallySettled, .hasDeadline]) else {
                return false
            }
            let word = core.upstream.load()
            switch word.mark {
            case .none: return areInputsHeldUp(of: core, here, &limit)
            // The source exists as long as this thread does not run its waiter: see `UpstreamWord`.
            case .waiting: core = word.core.object.root
            case .linkedFrom: core = word.core.object
            // A core that is still counted has been cancelled, and is about to be notified.
            case .taken: return core.settled == nil && !core.marks.contains(.countsAsWaiting)
            case .fulfilled, .rejected: return false
            }
        }
        return false
    }
    /// If all sources of a combinator are needed, one that is held up is enough; otherwise, each must be.
    private static func areInputsHeldUp(of core: PromiseCore, _ here: LoopRef, _ limit: inout Int) -> Bool {
        guard let combinator = core as? CombinatorCore else { return false }
        let inputs = combinator.inputs
        if combinator.needsAllInputs { return inputs.contains { isHeldUp($0, here, &limit) } }
        return !inputs.isEmpty && inputs.allSatisfy { isHeldUp($0, here, &limit) }
    }
}
