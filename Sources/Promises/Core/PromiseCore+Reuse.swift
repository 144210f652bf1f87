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
    @inlinable @inline(__always)
    static func pending(_ code: @escaping (PromiseCore, Phase) -> Void) -> PromiseCore { SpareCores.pending(code) }

    /// A core that is fulfilled from the start: a kept one if there is one. It never waits, and therefore belongs to no
    /// loop. For results that a handler is waiting to receive, whose cores are kept in the end; others are made by `init`.
    @inlinable @inline(__always)
    static func fulfilled<Value>(_ value: consuming Value) -> PromiseCore {
        let flags = State.fulfilled | flags(Value.self)
        let core = SpareCores.settled(as: flags) { PromiseCore.perform(Follow<Value>.self, $0, $1) }
        core.store(value)
        return core
    }

    /// Releases the caller's reference to a core that has settled and whose outcome it has received. Keeps the core if
    /// it can be used again.
    @inlinable @inline(__always)
    static func releaseOrKeep(_ reference: Unmanaged<PromiseCore>) { SpareCores.releaseOrKeep(reference) }
}

/// The functions that take and keep cores, which clients call. In an enumeration, since the callers of a class's static
/// functions look its metadata up.
@usableFromInline
enum SpareCores {
    // Never inlined, nor are the functions that keep a core: no function that has read the constants of a core also sees
    // them written anew.
    @usableFromInline @inline(never)
    static func pending(_ code: @escaping (PromiseCore, PromiseCore.Phase) -> Void) -> PromiseCore {
        let loop = EventLoop.unmanagedOfThisThread
        guard let spare = loop._withUnsafeGuaranteedRef({ $0.takeSpare() }) else {
            return PromiseCore(state: State.pending, loop: loop.toOpaque(), code: code)
        }
        reuse(spare, loop.toOpaque(), code, as: State.pending)
        return Unmanaged<PromiseCore>.fromOpaque(spare.toOpaque()).takeRetainedValue()
    }

    /// A core in this state, whose outcome the caller stores. No loop is made for a thread that has none.
    @usableFromInline @inline(never)
    static func settled(as state: UInt, _ code: @escaping (PromiseCore, PromiseCore.Phase) -> Void) -> PromiseCore {
        guard let here = clinux_get_current_loop(),
            let spare = Unmanaged<EventLoop>.fromOpaque(here)._withUnsafeGuaranteedRef({ $0.takeSpare() })
        else { return PromiseCore(state: state, loop: nil, code: code) }
        reuse(spare, nil, code, as: state)
        return Unmanaged<PromiseCore>.fromOpaque(spare.toOpaque()).takeRetainedValue()
    }

    /// The fields that are written anew although they are constants: those before the payload.
    private struct Constants {
        let loop: UnsafeMutableRawPointer?
        let code: (PromiseCore, PromiseCore.Phase) -> Void
    }

    /// Their words: the last is the object with the captures of the code, or zero.
    private typealias ConstantWords = (loop: UInt, function: UInt, captures: UInt)

    /// Makes a kept core one in this state.
    @inline(__always)
    private static func reuse(
        _ spare: Unmanaged<Job>, _ loop: UnsafeMutableRawPointer?,
        _ code: @escaping (PromiseCore, PromiseCore.Phase) -> Void, as state: UInt
    ) {
        // `code` is a constant, so that calling it retains nothing. Writing it is sound here: the caller has the only
        // reference, which it has taken from the loop as it would take a block from the allocator, so no code has read
        // a constant through this reference. An assignment releases the captures of the code before: generic code that
        // is not specialised captures its types. Other code has no captures, and its words are copied.
        let place = spare.toOpaque() + PromiseCore.payloadOffset - MemoryLayout<Constants>.size
        let words = unsafeBitCast(Constants(loop: loop, code: code), to: ConstantWords.self)
        if words.captures | place.load(as: ConstantWords.self).captures == 0 {
            place.storeBytes(of: words, as: ConstantWords.self)
        } else {
            place.assumingMemoryBound(to: Constants.self).pointee = Constants(loop: loop, code: code)
        }
        spare._withUnsafeGuaranteedRef {
            let core = unsafeDowncast($0, to: PromiseCore.self)
            assert(core.state.load(ordering: .relaxed) == State.spare, "a kept core was changed")
            core.state.store(state, ordering: .relaxed)
            core.upstream.store(0, ordering: .relaxed)
            core.resetMarks()
        }
    }

    /// Releases the caller's reference to a core that has settled and whose outcome it has received. Keeps the core if
    /// it can be used again.
    @usableFromInline @inline(never)
    static func releaseOrKeep(_ reference: Unmanaged<PromiseCore>) {
        guard let here = clinux_get_current_loop() else { return reference.release() }
        var core = reference.takeRetainedValue()
        // (By the reference, which `core` has taken over: otherwise the check would retain it.)
        guard core.isPlain(at: here), isKnownUniquelyReferenced(&core),
            reference._withUnsafeGuaranteedRef({ $0.isUnannotated })
        else { return }
        if core.state.load(ordering: .acquiring) != State.fulfilled | State.isTrivial { core.destroyOutcome() }
        // The loop is there still: it does not end before the code that runs on it has returned.
        PromiseCore.keep(.passRetained(core), at: here)
    }
}

extension PromiseCore {
    /// Whether a core to which the caller has the only reference can be kept by the loop at `here`, apart from what the
    /// core holds.
    @inline(__always)
    fileprivate func isPlain(at here: UnsafeMutableRawPointer) -> Bool {
        type(of: self) == PromiseCore.self && (loop == here || loop == nil) && role.isEmpty
    }

    /// Ask it only once the caller's reference is known to be the only one: until then, another thread may annotate the
    /// core.
    @inline(__always)
    fileprivate var isUnannotated: Bool { annotations.load(ordering: .relaxed) == 0 }

    /// Keeps the core, with the caller's reference, or releases that. The core has nothing to destroy.
    @inline(__always)
    fileprivate static func keep(_ core: Unmanaged<PromiseCore>, at here: UnsafeMutableRawPointer) {
        assert(!hasSideTable(core), "a weak reference to a core that is not a WeakCore")
        let job = Unmanaged<Job>.fromOpaque(core.toOpaque())
        let isKept = Unmanaged<EventLoop>.fromOpaque(here)._withUnsafeGuaranteedRef { $0.keepSpare(job) }
        if !isKept { return core.release() }
        core._withUnsafeGuaranteedRef { $0.state.store(State.spare, ordering: .relaxed) }
    }

    /// Destroys the value or the error, as the deinit would. This may run code of the user's.
    @inline(never)
    fileprivate func destroyOutcome() {
        end()
        state.store(State.fulfilled | State.isTrivial, ordering: .relaxed)
    }

    /// Whether the running reference to this core, which has become a link and whose operation has run, is the only one,
    /// and the core can be used again. Nothing is left in it then but the reference to the root.
    @inline(__always)
    func isSpareLink(_ here: UnsafeMutableRawPointer) -> Bool {
        upstream.load(ordering: .relaxed) == Upstream.taken && isPlain(at: here) && isReferencedOnce && isUnannotated
    }

    /// Keeps the core, or releases it, with the running reference: it is such a link, and another core has taken its
    /// reference to the root over.
    @inline(__always)
    func keepWithoutLink(_ here: UnsafeMutableRawPointer) {
        state.store(State.fulfilled | State.isTrivial, ordering: .relaxed)
        Self.keep(.passUnretained(self), at: here)
    }

    /// For assertions: whether the runtime counts the references to the core in a side table, as it does from the first
    /// weak reference on. The word behind the metadata then has its two highest bits set.
    static func hasSideTable(_ core: Unmanaged<PromiseCore>) -> Bool {
        (core.toOpaque() + 8).load(as: UInt.self) >> 62 == 3
    }
}
