import Synchronization

// References to a loop that the layer above counts: one for each core of a promise, which may outlive its loop. A counted
// object stays where it is, so the core's address of its loop never becomes that of another loop, and a job that is
// posted to it after its end is refused.
//
// Swift's own count would cost each core two atomic operations. Here the loop's thread counts without one.

/// The part of the count that other threads change.
///
/// Invariant: the number of references is the sum of this count and of the loop's `ownReferences`, which only its thread
/// changes, while the loop is its current one. Until the thread has left the loop for good, this count is far from zero;
/// from then on it is the whole number, and the loop owns itself until it is zero.
struct SharedReferences: ~Copyable {
    private static var used: Int { 1 << 62 }
    private let count = Atomic(SharedReferences.used)

    func add() { count.add(1, ordering: .relaxed) }

    /// - Returns: true if it was the last reference to a loop that its thread has left.
    func remove() -> Bool { count.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 }

    /// The loop's thread has left it, and has counted `own` references.
    /// - Returns: true if there are no references.
    func close(own: Int) -> Bool { count.add(own - Self.used, ordering: .acquiringAndReleasing).newValue == 0 }
}

extension EventLoop {
    /// Counts a reference. On the thread that has this loop as its current one.
    @inlinable @inline(__always)
    package func addOwnReference() { ownReferences &+= 1 }

    /// The counterpart of `addOwnReference`, also for a reference that another thread has counted.
    @inlinable @inline(__always)
    package func removeOwnReference() { ownReferences &-= 1 }

    /// Counts a reference to `loop`, which another one holds. Any thread.
    // These two are static: code that may release the loop inside a method would retain it first.
    @inline(never)
    package static func addReference(to loop: Unmanaged<EventLoop>) {
        loop._withUnsafeGuaranteedRef { $0.shared.references.add() }
    }

    /// The counterpart of `addReference`. Any thread.
    @inline(never)
    package static func removeReference(to loop: Unmanaged<EventLoop>) {
        if loop._withUnsafeGuaranteedRef({ $0.shared.references.remove() }) { loop.release() }
    }

    /// Called on the loop's thread when the loop has ended and will never be the current one again: it stays where it is
    /// until the last reference is gone.
    func leaveForGood() {
        let reference = Unmanaged.passRetained(self)
        if shared.references.close(own: ownReferences) { reference.release() }
    }
}
