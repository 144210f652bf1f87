import CLinux
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
    /// Counts a reference to this loop. Any thread that is known to find it here.
    @inlinable @inline(__always)
    package func addReference() {
        if isThisThreads { ownReferences &+= 1 } else { addReferenceElsewhere() }
    }

    /// The counterpart of `addReference`. Any thread.
    /// - Returns: true if the caller must release the loop, which it may then not use any more.
    @inlinable @inline(__always)
    package func removeReference() -> Bool {
        if !isThisThreads { return removeReferenceElsewhere() }
        ownReferences &-= 1
        return false
    }

    /// Whether it is the current loop of the calling thread.
    @inlinable @inline(__always)
    var isThisThreads: Bool { clinux_get_current_loop() == Unmanaged.passUnretained(self).toOpaque() }

    @usableFromInline @inline(never)
    func addReferenceElsewhere() { shared.references.add() }

    @usableFromInline @inline(never)
    func removeReferenceElsewhere() -> Bool { shared.references.remove() }

    /// Called on the loop's thread when the loop has ended and will never be the current one again: it stays where it is
    /// until the last reference is gone.
    func leaveForGood() {
        let reference = Unmanaged.passRetained(self)
        if shared.references.close(own: ownReferences) { reference.release() }
    }
}
