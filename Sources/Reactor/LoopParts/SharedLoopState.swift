import Synchronization

/// The part of a loop that other threads may access.
///
/// Invariant: all of it is atomic, locked or constant, and the loop holds it in a `let`. So the `Sendable` `LoopRemote`
/// is sound.
@usableFromInline
struct SharedLoopState: ~Copyable {
    @usableFromInline let waker = SharedWaker()
    let work = SharedWork()
    let life = LoopLife()
    let references = SharedReferences()

    init() {}

    /// Any thread. Posts `job`, and takes over the caller's reference.
    /// - Returns: false once the loop has ended; the caller keeps the reference.
    @inline(__always)
    func post(_ job: Unmanaged<Job>) -> Bool {
        switch waker.mailbox.post(job) {
        case .delivered: return true
        case .deliveredToSleeper:
            // A forked child shares the eventfd with the parent, which counts its writes.
            if !life.isForked { waker.wake() }
            return true
        case .refused: return false
        }
    }
}
