import CLinux
import ReactorLibc
import Synchronization

/// Ends a loop's wait: by an eventfd that threads write after posting jobs, and a timerfd for the nearest deadline,
/// both registered with the loop's epoll descriptor.
///
/// Invariant: used on the loop's thread only. While `isParked`, the mailbox may be parked, and the first thread to post
/// then writes the eventfd. The loop counts these threads, and each counts its finished write, so the descriptor is not
/// closed while a thread writes. The timerfd is armed for `armedDeadline`. After a cancellation it may be too early; in
/// a wait without a limit it is never too late.
@usableFromInline
struct LoopWaker {
    /// True from `park` to `unpark`, which checks if a thread has posted in between.
    var isParked = false
    /// True when another event loop waits for this one through `EventLoop.fileDescriptor`. The mailbox then stays
    /// parked between turns, so a posted job makes the descriptor readable.
    var isEmbedded = false
    /// Times that a thread found the mailbox parked. Each thread has written the eventfd or is about to.
    private var wakes = 0
    /// `.max` if not armed.
    private var armedDeadline = Int64.max
    /// True when the kernel refuses timerfds for good, for instance by seccomp.
    private var isTimerRefused = false
    /// The longest real wait in milliseconds with a virtual clock and no deadline; negative for no limit.
    var realLimit: CInt = -1

    // MARK: Mailbox

    /// Parks the mailbox, unless a nested turn has left it parked.
    /// - Returns: false if there are jobs, so the loop must not wait.
    @inline(__always)
    mutating func park(_ shared: borrowing SharedWaker) -> Bool {
        if isParked { return shared.mailbox.isEmpty }
        isParked = shared.mailbox.park()
        return isParked
    }

    /// - Returns: true if another thread ended the wait.
    @inline(__always)
    mutating func unpark(_ shared: borrowing SharedWaker) -> Bool {
        isParked = false
        guard !shared.mailbox.unpark() else { return false }
        wakes += 1
        return true
    }

    // MARK: Deadlines

    /// Arms the timerfd to end a wait at `deadline` or earlier.
    /// - Returns: false if the timerfd cannot be opened or armed. The wait must then use its own time-out, which is
    ///   coarser; a server that is out of descriptors still needs its timers to recover.
    /// - Throws: if other code closed the timerfd and reused its number, and in a forked child.
    @inline(__always)
    mutating func arm(
        _ deadline: Int64, _ poller: inout Poller, _ shared: borrowing SharedWaker, _ kernel: CountingSyscalls
    ) throws(SystemError) -> Bool {
        deadline >= armedDeadline ? true : try armEarlier(deadline, &poller, shared, kernel)
    }

    /// Arms the timerfd only for an earlier deadline. For a cancelled timer it stays armed, for one spurious wake-up at
    /// most. Starting and cancelling 100,000 request time-outs arms it twice.
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

    mutating func timerHasFired() { armedDeadline = .max }

    /// Notes, after each clock reading, that a timerfd armed for an earlier time has expired.
    @inline(__always)
    mutating func noteTime(_ now: Int64) { if armedDeadline <= now { armedDeadline = .max } }

    // MARK: Descriptors

    /// Opens all descriptors or none. The epoll descriptor must be open.
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

    /// Opens the timerfd before there is a timer. If a server without free descriptors opened it later, it would take
    /// the first freed one, which a waiting client needs.
    /// - Returns: false without a timerfd. After a shortage, the next call tries again.
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

    func descriptors(_ shared: borrowing SharedWaker) -> [(source: Poller.OwnDescriptor, fd: CInt)] {
        let (mailbox, timer) = (shared.descriptor.load(ordering: .relaxed), shared.timer.load(ordering: .relaxed))
        return (mailbox >= 0 ? [(.mailbox, mailbox)] : []) + (timer >= 0 ? [(.timer, timer)] : [])
    }

    /// Closes the descriptors once no thread writes the eventfd, whose number may be reused. A forked child lacks these
    /// threads.
    func close(_ shared: borrowing SharedWaker, _ kernel: CountingSyscalls, isForked: Bool) {
        let (mailbox, timer) = (shared.descriptor.load(ordering: .relaxed), shared.timer.load(ordering: .relaxed))
        if mailbox >= 0 {
            while shared.finishedWakes.load(ordering: .acquiring) < wakes && !isForked { sched_yield() }
            kernel.close(mailbox)
        }
        if timer >= 0 { kernel.close(timer) }
    }
}
