import CLinux
import ReactorLibc
import Synchronization

/// Ends a loop's wait apart from its descriptors: an eventfd, to which other threads write when they have posted jobs,
/// and a timerfd for the nearest deadline. Both are registered with the loop's epoll descriptor.
///
/// Invariant: used on the loop's thread only. While `isParked` is true the mailbox may be parked, and the first job
/// that another thread posts then writes the eventfd; the loop counts these threads, and they count their writes, so
/// that the descriptor is not closed under a writer. The timerfd is armed for `armedDeadline`, which may be earlier
/// than the earliest timer, since it stays armed when a timer is cancelled, but is never later during a wait without a
/// limit.
@usableFromInline
struct LoopWaker {
    /// Whether the loop has parked the mailbox and has not yet checked whether another thread found it parked.
    var isParked = false
    /// Whether another event loop waits for this one, through `EventLoop.fileDescriptor`. The mailbox then stays parked
    /// between turns, so that mail makes the descriptor readable.
    var isEmbedded = false
    /// How often another thread has found the mailbox parked. Each of these threads has written the eventfd, or is
    /// about to.
    private var wakes = 0
    /// The deadline for which the timerfd is armed; `.max` if it is not armed.
    private var armedDeadline = Int64.max
    /// Whether the kernel refuses timerfds for good, for instance because of seccomp.
    private var isTimerRefused = false
    /// The longest real wait in milliseconds of a loop with a virtual clock and no deadline; negative for no limit.
    var realLimit: CInt = -1

    // MARK: Mail

    /// Parks the mailbox before a wait. A nested turn may have left it parked.
    /// - Returns: false if there is mail: the loop must not wait.
    @inline(__always)
    mutating func park(_ shared: borrowing SharedWaker) -> Bool {
        if isParked { return shared.mailbox.isEmpty }
        isParked = shared.mailbox.park()
        return isParked
    }

    /// Ends the sleep.
    /// - Returns: whether another thread has ended it.
    @inline(__always)
    mutating func unpark(_ shared: borrowing SharedWaker) -> Bool {
        isParked = false
        guard !shared.mailbox.unpark() else { return false }
        wakes += 1
        return true
    }

    // MARK: Deadlines

    /// Makes the timerfd end a wait at `deadline` at the latest, or at the deadline for which it is armed if that is
    /// earlier.
    /// - Returns: false if the timerfd cannot be opened or armed; the wait itself must then end in time. That is
    ///   coarser, but a server that has run out of descriptors needs its timers to recover.
    /// - Throws: if the descriptor is no longer a timerfd, because other code has closed it; and in a forked child.
    @inline(__always)
    mutating func arm(
        _ deadline: Int64, _ poller: inout Poller, _ shared: borrowing SharedWaker, _ kernel: CountingSyscalls
    ) throws(SystemError) -> Bool {
        deadline >= armedDeadline ? true : try armEarlier(deadline, &poller, shared, kernel)
    }

    /// The timerfd stays armed when the timer is cancelled, at the cost of one spurious wake-up, and is armed again
    /// only for an earlier deadline: 100,000 request time-outs, started and cancelled, arm it twice.
    @inline(never)
    private mutating func armEarlier(
        _ deadline: Int64, _ poller: inout Poller, _ shared: borrowing SharedWaker, _ kernel: CountingSyscalls
    ) throws(SystemError) -> Bool {
        guard openTimer(&poller, shared, kernel) else { return false }
        // Zero would disarm the timerfd.
        let moment = max(deadline, 1)
        let time = timespec(tv_sec: Int(moment / 1_000_000_000), tv_nsec: Int(moment % 1_000_000_000))
        let timer = shared.timer.load(ordering: .relaxed)
        do throws(SystemError) { _ = try kernel.timerSet(timer, time).orThrow(.timerSet) } catch {
            if error.code == EBADF || error.code == EINVAL || kernel.isForked { throw error }
            return false
        }
        armedDeadline = deadline
        return true
    }

    /// The timerfd has expired.
    mutating func timerHasFired() { armedDeadline = .max }

    /// Called when the loop has read the clock: a timerfd that was armed for an earlier moment has expired.
    @inline(__always)
    mutating func noteTime(_ now: Int64) { if armedDeadline <= now { armedDeadline = .max } }

    // MARK: Descriptors

    /// Opens the descriptors, or none. The epoll descriptor must be open.
    mutating func open(
        _ poller: inout Poller, _ shared: borrowing SharedWaker, _ kernel: CountingSyscalls
    ) throws(SystemError) {
        let fd = CInt(try kernel.eventCreate().orThrow(.eventCreate))
        do throws(SystemError) { try poller.add(.mailbox, fd, kernel) } catch {
            kernel.close(fd)
            throw error
        }
        _ = openTimer(&poller, shared, kernel)
        shared.descriptor.store(fd, ordering: .releasing)
    }

    /// Opens the timerfd, before there is a timer. A server that has run out of descriptors would otherwise open it
    /// with the first descriptor that becomes free again, which a waiting client needs.
    /// - Returns: false if there is none. A lack of resources may be temporary: the next call tries again.
    private mutating func openTimer(
        _ poller: inout Poller, _ shared: borrowing SharedWaker, _ kernel: CountingSyscalls
    ) -> Bool {
        if shared.timer.load(ordering: .relaxed) >= 0 { return true }
        if isTimerRefused { return false }
        do throws(SystemError) {
            let fd = CInt(try kernel.timerCreate().orThrow(.timerCreate))
            do throws(SystemError) { try poller.add(.timer, fd, kernel) } catch {
                kernel.close(fd)
                throw error
            }
            shared.timer.store(fd, ordering: .releasing)
            return true
        } catch {
            isTimerRefused = !error.isShortage
            return false
        }
    }

    /// The open descriptors, for the poller.
    func descriptors(_ shared: borrowing SharedWaker) -> [(source: Poller.OwnDescriptor, fd: CInt)] {
        let (mailbox, timer) = (shared.descriptor.load(ordering: .relaxed), shared.timer.load(ordering: .relaxed))
        return (mailbox >= 0 ? [(.mailbox, mailbox)] : []) + (timer >= 0 ? [(.timer, timer)] : [])
    }

    /// Closes the descriptors, after the writes of other threads to the eventfd: a thread that found the mailbox parked
    /// writes a moment later, and by then the number must not belong to another descriptor. A forked child does not
    /// have that thread.
    func close(_ shared: borrowing SharedWaker, _ kernel: CountingSyscalls, isForked: Bool) {
        let (mailbox, timer) = (shared.descriptor.load(ordering: .relaxed), shared.timer.load(ordering: .relaxed))
        if mailbox >= 0 {
            while shared.finishedWakes.load(ordering: .acquiring) < wakes && !isForked { sched_yield() }
            kernel.close(mailbox)
        }
        if timer >= 0 { kernel.close(timer) }
    }
}
