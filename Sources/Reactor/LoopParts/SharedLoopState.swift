import Synchronization

/// The part of a loop that other threads may access.
///
/// Invariant: everything in it is atomic, locked, or constant; the loop holds it in a `let`. That makes `LoopRemote`
/// sound, which is `Sendable` and refers to the loop.
@usableFromInline
struct SharedLoopState: ~Copyable {
    @usableFromInline let waker = SharedWaker()
    let work = SharedWork()
    let life = LoopLife()
    let references = SharedReferences()

    init() {}

    /// Any thread: posts `job` and takes over the caller's reference.
    /// - Returns: false once the loop has ended; the reference is still the caller's then.
    @inline(__always)
    func post(_ job: Unmanaged<Job>) -> Bool {
        switch waker.mailbox.post(job) {
        case .delivered: return true
        case .deliveredToSleeper:
            // A forked child shares the eventfd with the parent, which counts the writes to it.
            if !life.isForked { waker.wake() }
            return true
        case .refused: return false
        }
    }
}
