import Glibc

/// The timers of a loop, and the timerfd that ends a wait for the earliest of them.
///
/// Invariant: used on the loop's thread only. The timerfd is armed for `armedDeadline`, which may be earlier than the
/// earliest timer, since it stays armed when a timer is cancelled, but is never later during a wait without a limit.
struct LoopTimers: ~Copyable {
    var heap = TimerHeap()
    /// The timerfd, or −1 before there is one.
    var descriptor: CInt = -1
    // The deadline for which the timerfd is armed; `.max` if it is not armed.
    var armedDeadline = Int64.max
    /// How many milliseconds a loop with a virtual clock really waits when it has no deadline; below zero: without a
    /// limit.
    var realLimit: CInt = -1

    /// The timers that one turn fires: those that were due, and had been started, when the turn had asked the kernel.
    struct Due {
        let moment: Int64
        let horizon: UInt64
    }

    /// The timers that are due at `now`, `nil` if none is.
    @inline(__always)
    mutating func due(at now: Int64) -> Due? {
        if armedDeadline <= now { armedDeadline = .max }
        guard let next = heap.nextDeadline, next <= now else { return nil }
        return Due(moment: now, horizon: heap.horizon)
    }
}
