import CLinux
import Glibc
import Reactor
import Synchronization

// Cores that are used again. A chain makes a core for each step and releases it a moment later. Taking it from the
// allocator and giving it back costs some 270 instructions, which is a quarter of a hop; a loop therefore keeps a few
// cores whose last reference is released on its thread, and makes the next promises of them.
//
// Invariant: a core is kept only where its deinit would have run otherwise, and is then to every other party what freed
// memory is. In detail:
// - The releasing party has the only reference. Every list, every queue and every owning word of `upstream` or `state`
//   counts as one, so the core is in none of them. A party that knows the core by an address that it does not own (a
//   waiter its source, a linked root the core that settles it) had to stop using the address before the last release,
//   because the allocator too gives the block to the next core at once.
// - The check of that orders what other threads did with the core, before they released it, before what this thread does
//   next; see `isOnlyReference`.
// - No table has an entry for its address, and no weak reference leads to it, since both are served by a deinit. Both
//   mark the core (`annotations`) while they have a reference to it. There are no unowned references to cores.
// - It is a plain `PromiseCore` without a role, of this thread's loop or of none. It then differs from a new core only
//   in what `reuse` writes.
// - Its value, its error or its link is destroyed before it is kept, as the deinit would have done it. This may run code
//   of the user's, which cannot reach the core, and which finds the list of kept cores unchanged.
// - The core is in the heap: its address has been in the `upstream` of a waiter, or it was such a waiter itself, so the
//   compiler could not put it on a stack.
//
// While it is kept its state is `StateWord.spare`, a link that leads nowhere: a party that reached it nevertheless would trap.
// Under a sanitizer nothing is kept (see `SpareJobs`), so the sanitizer checks the invariant: a party that would reach a
// kept core or the next promise then reaches freed memory.
//
// The nodes of combinators that run inline are used again in the same way, with these differences. A kept node is an
// `InputNode` that runs inline, of this very loop, so that its constants are those of the next one. It has no operation and
// no outcome, and no promise leads to it: it is and stays pending. The combinator that has its address forgets the address
// before the node notifies it, or withdraws.

// The functions that clients call are no static ones: callers in another module reach those through a second function, which
// drops the type. They are never inlined, nor are the functions that keep a core: no function that has read the constants of a
// core also sees them written anew. Their uncommon parts are functions of their own, so that they need not save registers.

/// A pending core of this thread's loop, whose operation the caller stores.
@usableFromInline @inline(never)
func makePendingCore(_ code: CoreCode) -> PromiseCore {
    guard let here = LoopRef.ofThisThreadIfAny else { return makeNewPendingCore(.ofThisThread, code) }
    guard let spare = SpareCores.take(on: here) else { return makeNewPendingCore(here, code) }
    return SpareCores.reuse(spare, here, code, as: .pending)
}

@inline(never)
private func makeNewPendingCore(_ loop: LoopRef, _ code: CoreCode) -> PromiseCore {
    PromiseCore(state: .pending, loop: loop, code: code)
}

/// A core in this state, whose outcome the caller stores. No loop is made for a thread that has none.
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
    /// Releases the caller's reference to a core that has settled and whose outcome it has received. Keeps the core if
    /// it can be used again.
    @usableFromInline @inline(never)
    func releaseOrKeep() {
        guard let here = LoopRef.ofThisThreadIfAny else { return release() }
        var core = takeOver()
        // (By this reference, which `core` has taken over: otherwise the check would retain it.)
        guard SpareCores.isPlain(core, at: here), isOnlyReference(&core),
            borrow({ SpareCores.isUnannotated($0) })
        else { return }
        if !core.state.load().isFulfilledTrivially { core.destroyOutcome() }
        // The loop is there still: it does not end before the code that runs on it has returned.
        SpareCores.keep(.retaining(core), at: here)
    }
}

enum SpareCores {
    /// The fields that are written anew although they are constants: those before the payload.
    private struct Constants {
        let loop: LoopRef?
        let code: CoreCode
    }

    /// Makes a kept core one in this state.
    @inline(__always)
    fileprivate static func reuse(
        _ spare: CoreRef, _ loop: LoopRef?, _ code: CoreCode, as state: StateWord
    ) -> PromiseCore {
        // Writing constants is sound here: the caller has the only reference, which it has taken from the loop as it would
        // take a block from the allocator, so no code has read a constant through this reference.
        let place = (spare.payload.address - MemoryLayout<Constants>.size).assumingMemoryBound(to: Constants.self)
        place.pointee = Constants(loop: loop, code: code)
        begin(spare, as: state)
        return spare.takeOver()
    }

    /// A node that runs inline and that `releaseOrKeep(node:)` has kept, pending again, with its only reference.
    static func takeNode(on loop: LoopRef) -> CoreRef? {
        guard let spare = loop.borrow({ $0.takeSpareNode() }) else { return nil }
        let node = CoreRef(spare)
        begin(node, as: .pending)
        return node
    }

    /// Releases the caller's reference to a node that has left its list or its queue, and has nothing to destroy. Keeps the
    /// node if it can be used again.
    static func releaseOrKeep(node: CoreRef) {
        if !node.borrow({ keep(node: $0) }) { node.release() }
    }

    // MARK: Parts

    @inline(__always)
    fileprivate static func take(on loop: LoopRef) -> CoreRef? {
        #if DEBUG
        if hasQuarantine { return takeFromQuarantine(loop) }
        #endif
        return loop.borrow { $0.takeSpare() }.map { CoreRef($0) }
    }

    /// Makes a kept core one in this state; its constants are those that it is to have.
    @inline(__always)
    private static func begin(_ spare: CoreRef, as state: StateWord) {
        spare.borrow { core in
            assert(core.state.loadRelaxed() == .spare, "a kept core was changed")
            #if DEBUG
            if core.role.isEmpty && !core.payload.isPoisoned {
                fatalError("swift-reactor: a kept core was written")
            }
            #endif
            core.state.store(state)
            core.upstream.store(.none)
            core.resetMarks()
        }
    }

    /// Whether a core to which the caller has the only reference can be kept by the loop at `here`, apart from what the
    /// core holds.
    @inline(__always)
    fileprivate static func isPlain(_ core: PromiseCore, at here: LoopRef) -> Bool {
        type(of: core) == PromiseCore.self && (core.loop.is(here) || core.loop == nil) && core.role.isEmpty
    }

    /// Ask it only once the caller's reference is known to be the only one: until then, another thread may annotate the
    /// core.
    @inline(__always)
    fileprivate static func isUnannotated(_ core: PromiseCore) -> Bool {
        core.shared.annotations.isEmpty
    }

    /// Keeps the core, with the caller's reference, or releases that. The core has nothing to destroy.
    @inline(__always)
    fileprivate static func keep(_ core: CoreRef, at here: LoopRef) {
        assert(!CoreLayout.hasSideTable(core), "a weak reference to a core that is not a WeakCore")
        if !here.borrow({ $0.keepSpare(core.job) }) { return core.release() }
        core.borrow { $0.state.store(.spare) }
        #if DEBUG
        core.payload.poison()
        #endif
    }

    /// Keeps this node, with the caller's reference.
    @inline(__always)
    private static func keep(node: PromiseCore) -> Bool {
        guard let here = LoopRef.ofThisThreadIfAny, node.loop == here, node.role == .inlineAtHome,
            node.isReferencedOnce, isUnannotated(node), node.upstream.loadRelaxed() == .taken,
            node.state.loadRelaxed() == .pending
        else { return false }
        assert(!CoreLayout.hasSideTable(node.ref), "a weak reference to a node")
        guard here.borrow({ $0.keepSpareNode(node.ref.job) }) else { return false }
        node.state.store(.spare)
        return true
    }

    /// Whether the running reference to a core, which has become a link and whose operation has run, is the only one,
    /// and the core can be used again. Nothing is left in it then but the reference to the root.
    @inline(__always)
    static func canKeepLink(_ core: PromiseCore, at here: LoopRef) -> Bool {
        core.upstream.loadRelaxed() == .taken && isPlain(core, at: here) && core.isReferencedOnce && isUnannotated(core)
    }

    /// Keeps the core, or releases it, with the running reference: it is such a link, and another core has taken its
    /// reference to the root over.
    @inline(__always)
    static func keepWithoutLink(_ core: PromiseCore, at here: LoopRef) {
        core.state.store(.fulfilled(isTrivial: true))
        keep(core.ref, at: here)
    }
}

extension PromiseCore {
    /// Destroys the value or the error, as the deinit would. This may run code of the user's.
    @inline(never)
    fileprivate func destroyOutcome() {
        end()
        state.store(.fulfilled(isTrivial: true))
    }
}

#if DEBUG
// A sanitizer cannot tell a core from the one that it was before. In a debug build with REUSE_CHECKS=1 in the environment a
// core that is kept is not used before 64 others have been kept after it. A party that reaches it meanwhile meets a link that leads nowhere,
// or changes a word that is compared when the core is used again.
extension SpareCores {
    private static let hasQuarantine = getenv("REUSE_CHECKS") != nil
    private static var rounds: Int { 64 }

    private static func takeFromQuarantine(_ loop: LoopRef) -> CoreRef? {
        loop.borrow { loop in
            var kept: [CoreRef] = []
            while let spare = loop.takeSpare() { kept.append(CoreRef(spare)) }
            let oldest = kept.count > rounds ? kept.popLast() : nil
            // There is room: they have been there.
            for core in kept.reversed() where !loop.keepSpare(core.job) { core.release() }
            return oldest
        }
    }
}
#endif
