/// A handle of an activity on a loop that lasts until it is cancelled: a timer, a watch, a signal watch, a hook, a hold
/// or a lease.
///
/// One rule holds for all of them:
///
/// - `cancel()` ends what the handle stands for, at once: a closure is not called any more, and is released; a claim no
///   longer counts. Further calls do nothing.
/// - The end of the loop cancels the handles of the loop.
/// - Releasing a handle does not end what the loop would still call: the loop has the closure. A hold and a lease have
///   no closure. They exist only as long as their handle, so releasing the last reference cancels them.
///
/// The handles of closures belong to the loop's thread, and end the process when they are used on another one. Holds
/// and leases may be used, and released, on any thread.
public protocol LoopHandle {
    /// Ends what this handle stands for. Further calls do nothing.
    /// - Returns: whether there was something to end.
    @available(*, noasync, message: "call it in a synchronous function on the loop's thread")
    @discardableResult
    func cancel() -> Bool

    /// Whether what this handle stands for has not ended yet. A timer that fires once has ended when it fires.
    var isActive: Bool { get }
}
