/// A handle to an activity on a loop: a timer, watch, signal watch, hook, hold or lease.
///
/// All follow the same rules:
///
/// - `cancel()` ends the activity at once. Its closure is released and not called again; a hold or lease no longer
///   counts. Further calls do nothing.
/// - The loop's end cancels its handles.
/// - The loop owns the closures, so releasing a handle does not cancel it. Holds and leases have no closure; releasing
///   the last reference cancels them.
///
/// Handles with closures belong to the loop's thread, and end the process when used on another. Any thread may use and
/// release holds and leases.
public protocol LoopHandle {
    /// Ends the activity. Further calls do nothing.
    /// - Returns: true if there was something to end.
    @available(*, noasync, message: "call it in a synchronous function on the loop's thread")
    @discardableResult
    func cancel() -> Bool

    /// True until the activity ends. A one-shot timer ends when it fires.
    var isActive: Bool { get }
}
