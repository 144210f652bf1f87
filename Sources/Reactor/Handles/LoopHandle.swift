/// A handle to an activity on a loop that lasts until it is cancelled: a timer, a watch, a signal watch, a hook, a hold
/// or a lease.
///
/// The same rules hold for all of them:
///
/// - `cancel()` ends the activity at once: the closure is not called any more, and is released; a hold or lease no
///   longer counts. Further calls do nothing.
/// - The end of the loop cancels the handles of the loop.
/// - Releasing the handle of a closure does not cancel it: the loop owns the closure. A hold and a lease have no
///   closure and exist only as long as their handle, so releasing the last reference cancels them.
///
/// The handles of closures belong to the loop's thread, and end the process when they are used on another one. Holds
/// and leases may be used, and released, on any thread.
public protocol LoopHandle {
    /// Ends the activity. Further calls do nothing.
    /// - Returns: whether there was something to end.
    @available(*, noasync, message: "call it in a synchronous function on the loop's thread")
    @discardableResult
    func cancel() -> Bool

    /// `true` until the activity ends. A timer that fires once has ended when it fires.
    var isActive: Bool { get }
}
