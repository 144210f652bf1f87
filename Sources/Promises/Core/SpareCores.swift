import CLinux
import Glibc
import Reactor

// Reuse of cores. A chain makes a core for each step and releases it a moment later. Allocating and freeing it costs
// some 270 instructions, a quarter of a hop; so a loop keeps a few cores whose last reference was released on its
// thread, and makes the next promises from them.
//
// Invariant: a core is kept only where its deinit would have run otherwise, and is then like freed memory to every
// other party. In detail:
// - The releasing party has the only reference. Every list, every queue and every owning word of `upstream` or `state`
//   counts as one, so the core is in none of them. A party that knows the core by an address that it does not own (a
//   waiter its source, a combinator its nodes, a linked root the core that settles it) must stop using the address
//   before the last release, because the allocator too would reuse the block at once.
// - That check orders what other threads did with the core, before they released it, before this thread's next
//   accesses; see `isOnlyReference`.
// - No table has an entry for its address, and no weak reference leads to it, since a deinit must update both. Tables
//   mark the core (`annotations`), weak references make a side table. There are no unowned references to cores.
// - It is a plain `PromiseCore`, of this thread's loop or of none. It then differs from a new core only in the fields
//   that `reuse` writes.
// - Its value, its error or its link is destroyed before it is kept, as the deinit would do it; a combinator's node has
//   none of these. This may run user code, which cannot reach the core, and which finds the list of kept cores
//   unchanged.
// - The core is in the heap: its address has been in the `upstream` of a waiter, or it was such a waiter itself, so the
//   compiler could not put it on a stack.
//
// While it is kept its state is `StateWord.spare`, a link that leads nowhere: a party that reached it nevertheless
// would trap. Under a sanitizer nothing is kept (see `SpareJobs`), so the sanitizer checks the invariant: a party that
// would reach a kept core or the next promise then reaches freed memory.
//
// The functions that clients call are not static: callers in another module reach static ones through a second
// function, which drops the type. They are never inlined, and only they rewrite the constants of a core: no function
// that has read these also sees them rewritten. (Keeping a core rewrites none.) Their uncommon parts are separate
// functions, so that they need not save registers.

/// A pending core of this thread's loop. The caller stores its operation.
@usableFromInline @inline(never)
func makePendingCore(_ code: CoreCode, _ role: CoreRole) -> PromiseCore {
    guard let here = LoopRef.ofThisThreadIfAny, let spare = SpareCores.take(on: here) else {
        return makeNewPendingCore(code, role)
    }
    return SpareCores.reuse(spare, here, code.with(role), as: .pending)
}

@inline(never)
private func makeNewPendingCore(_ code: CoreCode, _ role: CoreRole) -> PromiseCore {
    PromiseCore(state: .pending, loop: .ofThisThread, role: role, code: code)
}

/// A core in this state. The caller stores its outcome. Makes no loop for a thread that has none.
@usableFromInline @inline(never)
func makeSettledCore(_ state: StateWord, _ code: CoreCode) -> PromiseCore {
    guard let here = LoopRef.ofThisThreadIfAny, let spare = SpareCores.take(on: here) else {
        return makeNewSettledCore(state, code)
    }
    return SpareCores.reuse(spare, nil, code, as: state)
}

@inline(never)
private func makeNewSettledCore(_ state: StateWord, _ code: CoreCode) -> PromiseCore {
    PromiseCore(state: state, loop: nil, code: code)
}

extension CoreRef {
    /// Releases the caller's reference to a settled core whose outcome it has received. Keeps the core if it can be
    /// reused.
    @usableFromInline @inline(never)
    func releaseOrKeep() {
        guard let here = LoopRef.ofThisThreadIfAny else { return release() }
        var core = takeOver()
        // (By this reference, which `core` has taken over: otherwise the check would retain it.)
        guard SpareCores.isPlain(core, at: here), isOnlyReference(&core),
            borrow({ SpareCores.isForgotten($0) })
        else { return }
        if !core.state.load().isFulfilledTrivially { core.destroyOutcome() }
        // The loop still exists: it does not end before the code that runs on it has returned.
        SpareCores.keep(.retaining(core), at: here)
    }
}

enum SpareCores {
    /// Makes a kept core one in this state.
    @inline(__always)
    fileprivate static func reuse(
        _ spare: CoreRef, _ loop: LoopRef?, _ code: CoreCode, as state: StateWord
    ) -> PromiseCore {
        // Writing constants is sound here: the caller has the only reference, taken from the loop as it would take a
        // block from the allocator, so no code has read a constant through this reference.
        let payload = spare.payload.address
        (payload - 16).storeBytes(of: loop, as: LoopRef?.self)
        (payload - 8).storeBytes(of: code, as: CoreCode.self)
        spare.borrow { core in
            assert(core.state.loadRelaxed() == .spare, "a kept core was changed")
            #if DEBUG
            if !core.payload.isPoisoned { fatalError("swift-reactor: a kept core was written") }
            #endif
            core.state.store(state)
            core.upstream.store(.none)
            core.resetMarks()
        }
        return spare.takeOver()
    }

    /// Releases the caller's reference to the node of a combinator that has left its list or its queue, and has nothing
    /// to destroy. Keeps the node if it can be reused.
    static func releaseOrKeep(node: CoreRef) {
        guard let here = LoopRef.ofThisThreadIfAny, node.borrow({ $0.state.loadRelaxed() == .pending }),
            node.borrow({ canKeep($0, at: here) })
        else { return node.release() }
        keep(node, at: here)
    }

    // MARK: Parts

    @inline(__always)
    fileprivate static func take(on loop: LoopRef) -> CoreRef? {
        #if DEBUG
        if hasQuarantine { return takeFromQuarantine(loop) }
        #endif
        return loop.borrow { $0.takeSpare() }.map { CoreRef($0) }
    }

    /// Whether the loop at `here` can keep a core to which the caller has the only reference, apart from the core's
    /// contents.
    @inline(__always)
    fileprivate static func isPlain(_ core: PromiseCore, at here: LoopRef) -> Bool {
        type(of: core) == PromiseCore.self && (core.loop.is(here) || core.loop == nil)
    }

    /// Call it only once the caller's reference is known to be the only one: until then, another thread may annotate
    /// the core, or refer to it weakly.
    @inline(__always)
    fileprivate static func isForgotten(_ core: PromiseCore) -> Bool {
        core.shared.annotations.isEmpty && !core.hasSideTable
    }

    /// Keeps the core with the caller's reference, or releases that. The core has nothing to destroy.
    @inline(__always)
    fileprivate static func keep(_ core: CoreRef, at here: LoopRef) {
        if !here.borrow({ $0.keepSpare(core.job) }) { return core.release() }
        core.borrow { $0.state.store(.spare) }
        #if DEBUG
        core.payload.poison()
        #endif
    }

    /// Whether the running reference to a core whose operation has run is the only one, and the core can be reused. If
    /// it has become a link, only its reference to the root is then left in it.
    @inline(__always)
    static func canKeep(_ core: PromiseCore, at here: LoopRef) -> Bool {
        // Without `&&`, whose closure would retain the core in a debug build.
        guard core.upstream.loadRelaxed() == .taken, isPlain(core, at: here), core.isReferencedOnce, isForgotten(core)
        else { return false }
        return true
    }

    /// Keeps such a link, or releases it, with the running reference; another core has taken over its reference to the
    /// root.
    @inline(__always)
    static func keepWithoutLink(_ core: PromiseCore, at here: LoopRef) {
        core.state.store(.fulfilled(isTrivial: true))
        keep(core.ref, at: here)
    }
}

extension PromiseCore {
    /// Destroys the value or the error, as the deinit would. This may run user code.
    @inline(never)
    fileprivate func destroyOutcome() {
        end()
        state.store(.fulfilled(isTrivial: true))
    }
}

#if DEBUG
// A sanitizer cannot tell a reused core from its previous use. In a debug build with REUSE_CHECKS=1 in the environment
// a kept core is not reused before 64 others have been kept after it. A party that reaches it meanwhile meets a link
// that leads nowhere, or changes a word that is compared when the core is reused.
extension SpareCores {
    private static let hasQuarantine = getenv("REUSE_CHECKS") != nil
    private static var rounds: Int { 64 }

    private static func takeFromQuarantine(_ loop: LoopRef) -> CoreRef? {
        loop.borrow { loop in
            var kept: [CoreRef] = []
            while let spare = loop.takeSpare() { kept.append(CoreRef(spare)) }
            let oldest = kept.count > rounds ? kept.popLast() : nil
            // There is room: they came from there.
            for core in kept.reversed() where !loop.keepSpare(core.job) { core.release() }
            return oldest
        }
    }
}
#endif
