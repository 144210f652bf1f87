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
