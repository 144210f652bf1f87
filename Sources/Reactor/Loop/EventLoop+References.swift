// The layer above counts a reference for each promise core, which may outlive its loop. While references are counted,
// the loop keeps its address. So a core never mistakes a new loop for the old one, and a job posted after the end is
// refused.
//
// Swift's reference count would cost two atomic operations per core; the loop's thread counts without any.

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
