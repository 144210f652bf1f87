import CLinux
import Glibc
import Synchronization

/// The sleep of a loop: whether its mailbox is parked, and which wake-ups are pending.
///
/// Invariant: used on the loop's thread only. While `isParked` is true the mailbox may be parked, and the first job
/// that another thread posts then writes the eventfd; the loop counts these threads, and they count their writes, so
/// that the descriptor is not closed under a writer.
@usableFromInline
struct LoopWaker {
    /// Whether the loop has parked the mailbox and has not yet checked whether another thread found it parked.
    var isParked = false
    /// Whether another event loop waits for this one, by `EventLoop.fileDescriptor`. The mailbox then stays parked
    /// between turns, so that mail makes the descriptor readable.
    var isEmbedded = false
    /// How often another thread has found the mailbox parked. Each of these threads has written the eventfd, or is
    /// about to.
    private(set) var wakes = 0

    /// Parks the mailbox before a wait. A nested turn may have left it parked.
    /// - Returns: false if there is mail: the loop must not wait.
    @inline(__always)
    mutating func park(_ shared: borrowing Shared) -> Bool {
        if isParked { return shared.mailbox.isEmpty }
        isParked = shared.mailbox.park()
        return isParked
    }

    /// Ends the sleep.
    /// - Returns: whether another thread has ended it.
    @inline(__always)
    mutating func unpark(_ shared: borrowing Shared) -> Bool {
        isParked = false
        guard !shared.mailbox.unpark() else { return false }
        wakes += 1
        return true
    }

    /// Where other threads leave jobs, and how they wake the loop.
    ///
    /// Invariant: `descriptor` is stored before the mailbox is parked for the first time, and read by other threads
    /// after they have found it parked.
    @usableFromInline
    struct Shared: ~Copyable {
        @usableFromInline let mailbox = Mailbox()
        /// The eventfd, or −1 before the first wait.
        let descriptor = Atomic<CInt>(-1)

        var isOpen: Bool { descriptor.load(ordering: .relaxed) >= 0 }

        /// The timerfd, or −1 before there is one. No thread but the loop's own arms it before the mailbox is parked.
        let timer = Atomic<CInt>(-1)
        /// How often a thread has ended the loop's sleep, or has tried to. After that it uses no descriptor any more.
        let finishedWakes = Atomic<Int>(0)

        /// Called on a thread that has found the mailbox parked: wakes the loop.
        func wake() {
            // The loop does not close its descriptors before this wake is counted: see `EventLoop.close`.
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
}
