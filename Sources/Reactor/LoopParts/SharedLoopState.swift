import Synchronization

/// The part of a loop that other threads may access.
///
/// Invariant: everything in it is atomic, locked or constant, and the loop holds it in a `let`. So the `Sendable`
/// `LoopRemote` is sound.
@usableFromInline
struct SharedLoopState: ~Copyable {
    @usableFromInline let waker = SharedWaker()
    let work = SharedWork()
    let life = LoopLife()
    let references = SharedReferences()

    init() {}

    /// Posts `job`, taking over the caller's reference. Any thread.
    /// - Returns: false once the loop has ended; the caller keeps the reference.
    @inline(__always)
    func post(_ job: Unmanaged<Job>) -> Bool {
        switch waker.mailbox.post(job) {
        case .delivered: return true
        case .deliveredToSleeper:
            // In a forked child, the eventfd is the parent's, which counts its writes.
            if !life.isForked { waker.wake() }
            return true
        case .refused: return false
        }
    }
}

/// The part of the count of references to a loop that other threads change; see `EventLoop.addOwnReference`.
///
/// Invariant: the number of references is this count plus the loop's `ownReferences`, which only the loop's thread
/// changes while the loop is current. This count stays far from zero until the thread leaves the loop for good. Then it
/// is the whole number, and the loop owns itself until it is zero.
struct SharedReferences: ~Copyable {
    private static var used: Int { 1 << 62 }
    private let count = Atomic(SharedReferences.used)

    func add() { count.add(1, ordering: .relaxed) }

    /// - Returns: true if it was the last reference to a loop that its thread has left.
    func remove() -> Bool { count.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 }

    /// Adds the `own` references that the loop's thread has counted, when that thread leaves the loop.
    func close(own: Int) -> Bool { count.add(own - Self.used, ordering: .acquiringAndReleasing).newValue == 0 }
}
