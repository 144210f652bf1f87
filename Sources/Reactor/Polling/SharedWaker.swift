import CLinux
import ReactorLibc
import Synchronization

/// The mailbox for other threads, and the means to wake the loop.
///
/// Invariant: `descriptor` is stored before the mailbox is first parked, and other threads read it only after they
/// found the mailbox parked.
@usableFromInline
struct SharedWaker: ~Copyable {
    @usableFromInline let mailbox = Mailbox()
    /// The eventfd, or −1 before the first wait.
    let descriptor = Atomic<CInt>(-1)

    var isOpen: Bool { descriptor.load(ordering: .relaxed) >= 0 }

    /// The timerfd, or −1. Before the mailbox is parked, only the loop's thread arms it.
    let timer = Atomic<CInt>(-1)
    /// Finished attempts by threads to wake the loop. After its attempt, a thread uses no descriptor.
    let finishedWakes = Atomic<Int>(0)

    /// Called on the thread that found the mailbox parked.
    func wake() {
        // The loop's descriptors stay open until this attempt is counted: see `LoopWaker.close`.
        var one: UInt64 = 1
        if write(descriptor.load(ordering: .acquiring), &one, 8) != 8 { wakeByTimer() }
        finishedWakes.add(1, ordering: .releasing)
    }

    /// Wakes the loop when its eventfd cannot be written, because other code has closed it or forbids the call.
    @inline(never)
    private func wakeByTimer() {
        let timer = timer.load(ordering: .acquiring)
        if timer < 0 { return }
        var past = itimerspec(it_interval: timespec(), it_value: timespec(tv_sec: 0, tv_nsec: 1))
        timerfd_settime(timer, CInt(TFD_TIMER_ABSTIME), &past, nil)
    }
}
