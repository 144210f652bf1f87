import Synchronization

/// All of a loop that other threads may touch.
///
/// Invariant: everything in it is atomic, locked, or constant; the loop holds it in a `let`. This is what makes
/// `EventLoop.Remote` sound, which is `Sendable` and refers to the loop.
@usableFromInline
struct SharedLoopState<Handle: AnyObject>: ~Copyable {
    @usableFromInline let waker = LoopWaker.Shared()
    let work = KeepAlive<Handle>.Shared()
    let lifecycle = LoopLifecycle<Handle>.Shared()
    /// Whether jobs are to remember where they come from: `LoopMeter.isTiming` for other threads.
    let keepsOrigins = Atomic(false)

    init() {}

    /// Any thread: hands over the caller's reference to `job`.
    /// - Returns: false once the loop has ended; the reference is still the caller's then.
    @inline(__always)
    func post(_ job: Unmanaged<Job>) -> Bool {
        switch waker.mailbox.post(job) {
        case .delivered: return true
        case .deliveredToSleeper:
            // The descriptor of a forked child is the parent's too, which counts what is written there.
            if !lifecycle.isForked { waker.wake() }
            return true
        case .refused: return false
        }
    }
}
