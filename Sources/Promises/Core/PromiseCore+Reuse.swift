import CLinux
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
//   next; see `isReferencedOnce`.
// - No table has an entry for its address, and no weak reference leads to it, since both are served by a deinit. Both
//   mark the core (`annotations`) while they have a reference to it. There are no unowned references to cores.
// - It is a plain `PromiseCore` without a role, of this thread's loop or of none. It then differs from a new core only
//   in what `reuse` writes.
// - Its value, its error or its link is destroyed before it is kept, as the deinit would have done it. This may run code
//   of the user's, which cannot reach the core, and which finds the list of kept cores unchanged.
// - The core is in the heap: its address has been in the `upstream` of a waiter, or it was such a waiter itself, so the
//   compiler could not put it on a stack.
//
// While it is kept its state is `State.spare`, a link that leads nowhere: a party that reached it nevertheless would trap.
// Under a sanitizer nothing is kept (see `SpareJobs`), so the sanitizer checks the invariant: a party that would reach a
// kept core or the next promise then reaches freed memory.

extension PromiseCore {
    /// A pending core of this thread's loop, whose operation the caller stores: a kept one if there is one.
    // Never inlined, nor are the functions that keep a core: no function that has read the constants of a core also sees
    // them written anew.
    @usableFromInline @inline(never)
    static func pending(_ code: @escaping (PromiseCore, Phase) -> Void) -> PromiseCore {
        let loop = EventLoop.unmanagedOfThisThread
        guard let spare = loop._withUnsafeGuaranteedRef({ $0.takeSpare() }) else {
            return PromiseCore(state: State.pending, loop: loop.toOpaque(), code: code)
        }
        reuse(spare, loop.toOpaque(), code)
        return Unmanaged<PromiseCore>.fromOpaque(spare.toOpaque()).takeRetainedValue()
    }

    /// The fields that are written anew although they are constants: those before the payload.
    private struct Constants {
        let loop: UnsafeMutableRawPointer?
        let code: (PromiseCore, Phase) -> Void
    }

    /// Makes a kept core a pending one.
    @inline(__always)
    private static func reuse(
        _ spare: Unmanaged<Job>, _ loop: UnsafeMutableRawPointer, _ code: @escaping (PromiseCore, Phase) -> Void
    ) {
        // `code` is a constant, so that calling it retains nothing. Writing it is sound here: the caller has the only
        // reference, which it has taken from the loop as it would take a block from the allocator, so no code has read
        // a constant through this reference. An assignment releases the captures of the code before: generic code that
        // is not specialised captures its types.
        let place = spare.toOpaque() + payloadOffset - MemoryLayout<Constants>.size
        place.assumingMemoryBound(to: Constants.self).pointee = Constants(loop: loop, code: code)
        spare._withUnsafeGuaranteedRef {
            let core = unsafeDowncast($0, to: PromiseCore.self)
            assert(core.state.load(ordering: .relaxed) == State.spare, "a kept core was changed")
            core.state.store(State.pending, ordering: .relaxed)
            core.upstream.store(0, ordering: .relaxed)
            core.resetMarks()
        }
    }

    /// Whether a core to which the caller has the only reference can be kept by the loop at `here`, apart from what the
    /// core holds.
    @inline(__always)
    private func isPlain(at here: UnsafeMutableRawPointer) -> Bool {
        type(of: self) == PromiseCore.self && (loop == here || loop == nil) && role.isEmpty
            && annotations.load(ordering: .relaxed) == 0
    }

    /// Keeps the core, with the caller's reference, or releases that. The core has nothing to destroy.
    @inline(__always)
    private static func keep(_ core: Unmanaged<PromiseCore>, at here: UnsafeMutableRawPointer) {
        assert(!hasSideTable(core), "a weak reference to a core that is not a WeakCore")
        let job = Unmanaged<Job>.fromOpaque(core.toOpaque())
        let isKept = Unmanaged<EventLoop>.fromOpaque(here)._withUnsafeGuaranteedRef { $0.keepSpare(job) }
        if !isKept { return core.release() }
        core._withUnsafeGuaranteedRef { $0.state.store(State.spare, ordering: .relaxed) }
    }

    /// Releases the caller's reference to a core that has settled and whose outcome it has received. Keeps the core if
    /// it can be used again.
    @usableFromInline @inline(never)
    static func releaseOrKeep(_ reference: Unmanaged<PromiseCore>) {
        guard let here = clinux_get_current_loop() else { return reference.release() }
        var core = reference.takeRetainedValue()
        guard core.isPlain(at: here), isKnownUniquelyReferenced(&core) else { return }
        if core.state.load(ordering: .acquiring) != State.fulfilled | State.isTrivial { core.destroyOutcome() }
        // The loop is there still: it does not end before the code that runs on it has returned.
        keep(.passRetained(core), at: here)
    }

    /// Destroys the value or the error, as the deinit would. This may run code of the user's.
    @inline(never)
    private func destroyOutcome() {
        end()
        state.store(State.fulfilled | State.isTrivial, ordering: .relaxed)
    }

    /// Releases the running reference to this core, which has become a link and whose operation has run. Keeps the core
    /// if it can be used again.
    @inline(__always)
    func releaseOrKeepLink(_ here: UnsafeMutableRawPointer) {
        let word = state.load(ordering: .acquiring)
        guard word & State.kindMask == State.link, upstream.load(ordering: .relaxed) == Upstream.taken,
            isPlain(at: here), isReferencedOnce
        else { return Unmanaged.passUnretained(self).release() }
        // Nothing is left but the reference to the root, which the core gives up first: the root's release may run code.
        state.store(State.fulfilled | State.isTrivial, ordering: .relaxed)
        Self.releaseLinks(word)
        Self.keep(.passUnretained(self), at: here)
    }

    /// For assertions: whether the runtime counts the references to the core in a side table, as it does from the first
    /// weak reference on. The word behind the metadata then has its two highest bits set.
    static func hasSideTable(_ core: Unmanaged<PromiseCore>) -> Bool {
        (core.toOpaque() + 8).load(as: UInt.self) >> 62 == 3
    }
}
