/// A loop's state for the main actor's jobs; see `EventLoop.servesMainActor`.
///
/// Invariant: used on the loop's thread only.
struct MainActorState {
    /// Whether the loop is the main thread's; `nil` means not known yet.
    var isOnMainThread: Bool?
    /// Whether one of the main actor's jobs is being run.
    var isRunningJobs = false
    /// Whether libdispatch's eventfd is registered with the loop's epoll descriptor.
    var watchesQueue = false
}
