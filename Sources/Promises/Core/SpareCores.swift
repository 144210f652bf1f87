import CLinux
import ReactorLibc
import Reactor

// A chain makes a core for each step and releases it a moment later. Allocating and freeing a core takes some 270
// instructions, a quarter of a step. So each loop keeps a few released cores for new promises.
//
// Invariant: a core is kept only where its deinit would have run, and to every other party it is then like freed
// memory.
// - The releasing party has the only reference (`isOnlyReference`): the core is in no list, queue or owning word. A
//   party with only the address has stopped using it before the last release.
// - No table (`annotations`) and no weak reference (`hasSideTable`) leads to the core; a deinit would have updated
//   both.
// - The core is a plain `PromiseCore` of this thread's loop or of none, in the heap, and its contents have been
//   destroyed. So `PromiseCore.reset` makes it equal to a new core.
//
// A kept core's state is `StateWord.spare`, a link to nothing: a party that reached it would trap. Under a sanitizer
// nothing is kept (see `SpareJobs`), so the sanitizer checks the invariant.
//
// The functions that clients call are not static: another module would call a static one through a second function,
// which drops the type. The uncommon parts are separate functions, so that the common ones need not save registers.

/// Makes a pending core; the caller stores the operation.
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

/// Makes a settled core; the caller stores the outcome. Makes no loop for a thread without one.
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
    /// Releases the caller's reference to a settled core whose outcome it has received, or keeps the core for reuse.
    @usableFromInline @inline(never)
    func releaseOrKeep() {
        guard let here = LoopRef.ofThisThreadIfAny else { return release() }
        var core = takeOver()
        // (`borrow` is used, since passing `core` would retain it.)
        guard SpareCores.isPlain(core, at: here), isOnlyReference(&core),
            borrow({ SpareCores.isForgotten($0) })
        else { return }
        if !core.state.load().isFulfilledTrivially { core.destroyOutcome() }
        // The loop still exists: it does not end before the code that runs on it has returned.
        SpareCores.keep(.retaining(core), at: here)
    }
}

enum SpareCores {
    @inline(__always)
    fileprivate static func reuse(
        _ spare: CoreRef, _ loop: LoopRef?, _ code: CoreCode, as state: StateWord
    ) -> PromiseCore {
        spare.borrow { core in
            assert(core.state.loadRelaxed() == .spare, "a kept core was changed")
            #if DEBUG
            if !core.payload.isPoisoned { fatalError("swift-reactor: a kept core was written") }
            #endif
            core.reset(state, loop, code)
        }
        return spare.takeOver()
    }

    /// Releases the caller's reference to a combinator's node, or keeps the node, which has left its list or queue, and
    /// has nothing to destroy.
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

    /// Returns true when the class and loop of `core` let the loop at `here` keep it.
    @inline(__always)
    fileprivate static func isPlain(_ core: PromiseCore, at here: LoopRef) -> Bool {
        type(of: core) == PromiseCore.self && (core.loop.is(here) || core.loop == nil)
    }

    /// Returns true when no table or weak reference leads to the core. Call this only once the caller has the only
    /// reference; before, another thread may add either.
    @inline(__always)
    fileprivate static func isForgotten(_ core: PromiseCore) -> Bool {
        core.shared.annotations.isEmpty && !core.hasSideTable
    }

    /// Keeps the core, which must have nothing to destroy, or releases the caller's reference.
    @inline(__always)
    fileprivate static func keep(_ core: CoreRef, at here: LoopRef) {
        if !here.borrow({ $0.keepSpare(core.job) }) { return core.release() }
        core.borrow { $0.state.store(.spare) }
        #if DEBUG
        core.payload.poison()
        #endif
    }

    /// Returns true when the running reference to a core whose operation has run is the only one, and the core can be
    /// reused. A core that has become a link then holds only its reference to the root.
    @inline(__always)
    static func canKeep(_ core: PromiseCore, at here: LoopRef) -> Bool {
        // Without `&&`, whose closure would retain the core in a debug build.
        guard core.sourceWord.loadRelaxed() == .taken, isPlain(core, at: here), core.isReferencedOnce, isForgotten(core)
        else { return false }
        return true
    }

    /// Keeps a link, or releases the running reference to it. Another core has taken over the link's reference to the
    /// root.
    @inline(__always)
    static func keepWithoutLink(_ core: PromiseCore, at here: LoopRef) {
        core.state.store(.fulfilled(isTrivial: true))
        keep(core.ref, at: here)
    }
}

extension PromiseCore {
    /// Destroys the outcome, as the deinit would. May run user code.
    @inline(never)
    fileprivate func destroyOutcome() {
        destroyContents()
        state.store(.fulfilled(isTrivial: true))
    }
}

#if DEBUG
// A sanitizer cannot tell a reused core from its previous use. In a debug build with REUSE_CHECKS=1 in the environment,
// a kept core is reused only after 64 other cores have been kept. A party that reaches the core in this time meets a
// link to nothing, or changes a word that the reuse checks.
extension SpareCores {
    private static let hasQuarantine = getenv("REUSE_CHECKS") != nil
    private static var rounds: Int { 64 }

    private static func takeFromQuarantine(_ loop: LoopRef) -> CoreRef? {
        loop.borrow { loop in
            var kept: [CoreRef] = []
            while let spare = loop.takeSpare() { kept.append(CoreRef(spare)) }
            let oldest = kept.count > rounds ? kept.popLast() : nil
            // The loop has room, because these cores came from it.
            for core in kept.reversed() where !loop.keepSpare(core.job) { core.release() }
            return oldest
        }
    }
}
#endif
