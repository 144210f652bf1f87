import Synchronization

// The layer above counts a reference for each promise core, which may outlive its loop. While references are counted,
// the loop keeps its address. So a core never mistakes a new loop for the old one, and a job posted after the end is
// refused.
//
// Swift's reference count would cost two atomic operations per core; the loop's thread counts without any.

/// The part of the count that other threads change.
///
/// Invariant: the number of references is this count plus the loop's `ownReferences`, which only the loop's thread
/// changes while the loop is current. This count stays far from zero until the thread leaves the loop for good. From
/// then on it is the whole number, and the loop retains itself until the count is zero.
struct SharedReferences: ~Copyable {
    private static var used: Int { 1 << 62 }
    private let count = Atomic(SharedReferences.used)

    func add() { count.add(1, ordering: .relaxed) }

    /// - Returns: true if it was the last reference to a loop that its thread has left.
    func remove() -> Bool { count.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 }

    /// Adds the `own` references that the loop's thread has counted, when that thread leaves the loop.
    func close(own: Int) -> Bool { count.add(own - Self.used, ordering: .acquiringAndReleasing).newValue == 0 }
}

extension EventLoop {
    /// Counts a reference. Only on the thread whose current loop this is.
    @inlinable @inline(__always)
    package func addOwnReference() { ownReferences &+= 1 }

    /// Also removes references that another thread counted.
    @inlinable @inline(__always)
    package func removeOwnReference() { ownReferences &-= 1 }

    /// Counts a reference to `loop`, which another reference must keep alive. Any thread.
    // These two are static: a method that may release the loop would retain it first.
    @inline(never)
    package static func addReference(to loop: Unmanaged<EventLoop>) {
        loop._withUnsafeGuaranteedRef { $0.shared.references.add() }
    }

    /// Any thread.
    @inline(never)
    package static func removeReference(to loop: Unmanaged<EventLoop>) {
        if loop._withUnsafeGuaranteedRef({ $0.shared.references.remove() }) { loop.release() }
    }

    /// Called on the loop's thread when the ended loop will never be current again. The loop lives until its last
    /// reference is removed.
    func leaveForGood() {
        let reference = Unmanaged.passRetained(self)
        if shared.references.close(own: ownReferences) { reference.release() }
    }
}
