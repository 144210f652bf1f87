import CLinux
import Reactor
import Synchronization

@usableFromInline package typealias CoreRef = UnownedReference<PromiseCore>

extension UnownedReference where Object: PromiseCore {
    @inlinable @inline(__always)
    var core: CoreRef { CoreRef(at: pointer) }

    @inlinable @inline(__always)
    package var payload: CorePayload { CorePayload(ofCoreAt: pointer) }

    /// This reference as an entry in a loop's queues.
    @inlinable @inline(__always)
    var job: Unmanaged<Job> { .fromOpaque(pointer) }

    @inline(__always)
    var next: CoreRef? {
        get { borrow { $0.nextWaiter } }
        nonmutating set { borrow { $0.nextWaiter = newValue } }
    }
}

extension UnownedReference where Object == PromiseCore {
    @inline(__always)
    init(_ job: Unmanaged<Job>) { self.init(at: job.toOpaque()) }

    var list: some Sequence<CoreRef> { sequence(first: self) { $0.next } }

    /// Reverses the list by changing its links.
    /// - Returns: the new first waiter.
    func reverseInPlace() -> CoreRef { CoreRef(at: Job.reversed(job)!.toOpaque()) }

    /// The caller knows the class.
    @inline(__always)
    func `as`<Core: PromiseCore>(_ type: Core.Type) -> UnownedReference<Core> { UnownedReference<Core>(at: pointer) }
}

extension CoreRef {
    /// The number of counted references to the core, including the caller's. Exact unless other threads release theirs
    /// during the call, since a party without a reference cannot get one.
    ///
    /// After the fence, the caller sees all that other parties did before they released their references.
    var referenceCount: Int {
        defer { atomicMemoryFence(ordering: .acquiring) }
        return clinux_reference_count(pointer)
    }
}

extension PromiseCore {
    /// The next older waiter. A core's list contains only cores.
    @inline(__always)
    final var nextWaiter: CoreRef? {
        get { next.map { CoreRef(at: $0.toOpaque()) } }
        set { next = newValue?.job }
    }

    @inlinable @inline(__always)
    package final var ref: CoreRef { CoreRef(self) }

    @inlinable @inline(__always)
    package final var address: UInt { ref.address }

    // Sound while `self` is alive: every use is a single load or store in a function that holds the core.
    @inlinable @inline(__always)
    package final var payload: CorePayload { ref.payload }

    /// Adds a reference for a callee to consume.
    @usableFromInline @inline(__always)
    package final func retain() { ref.retain() }

    @usableFromInline @inline(__always)
    final func release() { ref.release() }

    /// The caller knows the class.
    @inlinable @inline(__always)
    final func `as`<Core: PromiseCore>(_ type: Core.Type) -> Core { unsafeDowncast(self, to: type) }

    /// True when the caller's reference is the only one; see `isOnlyReference`.
    @inlinable @inline(__always)
    final var isReferencedOnce: Bool {
        // This takes the reference over and gives it back, so that the check counts no further reference.
        var core = ref.takeOver()
        let isOnly = isOnlyReference(&core)
        _ = CoreRef.retaining(core)
        return isOnly
    }
}

/// Returns true when this reference to a core is the only one. The caller then sees all that other parties did before
/// their release. Call this first; then load what they may have changed.
@inlinable @inline(__always)
func isOnlyReference(_ core: inout PromiseCore) -> Bool {
    guard isKnownUniquelyReferenced(&core) else { return false }
    // A release changes the count with releasing order, but this check reads it relaxed, so ARM64 may move later loads
    // before the check. On x86-64 the fence is no instruction.
    atomicMemoryFence(ordering: .acquiring)
    return true
}

extension StateWord {
    @inlinable @inline(__always)
    var waiters: CoreRef? { CoreRef(addressOrZero: address) }

    @inlinable @inline(__always)
    var root: CoreRef { CoreRef(address: address) }
}

extension SourceWord {
    /// The source, the adopted core, or the core with the cancellation. Only for a word with an address.
    @inlinable @inline(__always)
    var core: CoreRef { CoreRef(address: address) }

    /// The source, if the node is in its list. The reference is counted, so that the source outlives a withdrawal.
    var source: PromiseCore? { isWaiting ? core.object : nil }

    func release() { CoreRef(addressOrZero: address)?.release() }
}
