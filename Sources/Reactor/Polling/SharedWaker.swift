import CLinux
import ReactorLibc
import Synchronization

/// Where other threads post jobs, and how they wake the loop.
///
/// Invariant: `descriptor` is stored before the mailbox is parked for the first time, and other threads read it only
/// after they have found the mailbox parked.
@usableFromInline
struct SharedWaker: ~Copyable {
    @usableFromInline let mailbox = Mailbox()
    /// The eventfd, or −1 before the first wait.
    let descriptor = Atomic<CInt>(-1)

    var isOpen: Bool { descriptor.load(ordering: .relaxed) >= 0 }

    /// The timerfd, or −1 before there is one. No thread but the loop's own arms it before the mailbox is parked.
    let timer = Atomic<CInt>(-1)
    /// How often a thread has ended the loop's sleep, or has tried to. After counting, it uses no descriptor any more.
    let finishedWakes = Atomic<Int>(0)

    /// Called on a thread that has found the mailbox parked: wakes the loop.
    func wake() {
        // The loop does not close its descriptors before this wake is counted: see `LoopWaker.close`.
        var one: UInt64 = 1
        if write(descriptor.load(ordering: .acquiring), &one, 8) != 8 { wakeByTimer() }
        finishedWakes.add(1, ordering: .releasing)
    }

    /// Wakes the loop although its eventfd cannot be written, because other code has closed it or forbids it.
    @inline(never)
    private func wakeByTimer() {
        let timer = timer.load(ordering: .acquiring)
        if timer < 0 { return }
        var past = itimerspec(it_interval: timespec(), it_value: timespec(tv_sec: 0, tv_nsec: 1))
        timerfd_settime(timer, CInt(TFD_TIMER_ABSTIME), &past, nil)
    }
}
