import CLinux
import Libc
import Synchronization

/// The process's signal actions, and the loops that watch each signal.
///
/// The handler that the kernel calls runs on any thread at any instruction, so it only reads a fixed table of
/// atomics, sets a bit, and writes an eventfd: all of it async-signal-safe (signal-safety(7)).
enum SignalRegistry {
    // nonisolated(unsafe): allocated once, never moved or freed; everything reachable through it is atomic.
    nonisolated(unsafe) private static let slots: UnsafeMutableBufferPointer<SignalSlot> = {
        let slots = UnsafeMutableBufferPointer<SignalSlot>.allocate(capacity: count)
        for index in 0..<count { slots.initializeElement(at: index, to: SignalSlot()) }
        return slots
    }()
    private static var count: Int { 64 }
    // The number of signal handlers that are running now, on any thread: a slot is closed only when there are none.
    private static let running = Atomic<Int>(0)
    /// The actions that signals had before the registry's.
    private static let former = LockedValue.ofProcess(FormerActions())

    /// The watched signals.
    private static let watched = Atomic<UInt64>(0)

    static func bit(_ signal: CInt) -> UInt64 { 1 << UInt64(signal - 1) }

    // A thread of the library blocks all signals except faults. One that the thread itself has raised, as a handler does
    // with raise(3), is pending until the thread unblocks it.

    /// For the thread of a loop, before it waits: unblocks the watched signals, and blocks those that are no longer
    /// watched.
    /// - Parameter taken: the signals that the thread has unblocked.
    @inline(never)
    static func unblockWatched(_ taken: inout UInt64) {
        let watched = watched.load(ordering: .relaxed)
        if watched != taken { change(from: &taken, to: watched) }
    }

    @inline(never)
    private static func change(from taken: inout UInt64, to watched: UInt64) {
        var unwatched = set(taken & ~watched)
        for fault in LibraryThread.faults { sigdelset(&unwatched, fault) }
        pthread_sigmask(SIG_BLOCK, &unwatched, nil)
        var new = set(watched)
        pthread_sigmask(SIG_UNBLOCK, &new, nil)
        taken = watched
    }

    /// For the thread of a pool, after a job: lets the watched signals through that the job has raised.
    static func deliverRaised() {
        let watched = watched.load(ordering: .relaxed)
        if watched == 0 { return }
        var signals = set(watched)
        var before = sigset_t()
        pthread_sigmask(SIG_UNBLOCK, &signals, &before)
        pthread_sigmask(SIG_SETMASK, &before, nil)
    }

    private static func set(_ bits: UInt64) -> sigset_t {
        var signals = sigset_t()
        sigemptyset(&signals)
        for signal in 1...CInt(UInt64.bitWidth) where bits & bit(signal) != 0 { sigaddset(&signals, signal) }
        return signals
    }

    static func open(_ fd: CInt) throws(SystemError) -> SignalSlot {
        prepareForForks
        for slot in slots {
            if slot.descriptor.compareExchange(expected: -1, desired: fd, ordering: .acquiringAndReleasing).exchanged {
                // Stored before the slot wants any signal, and so before a handler reads it.
                slot.generation.store(ForkDetector.generation, ordering: .relaxed)
                return slot
            }
        }
        throw SystemError(.sigaction, ENOSPC, detail: "\(count) loops watch signals already, which is the limit")
    }

    /// Closes the slot and returns its descriptor, which no signal handler can write any more.
    static func close(_ slot: SignalSlot) -> CInt {
        slot.wanted.store(0, ordering: .sequentiallyConsistent)
        // A handler on another thread that saw the slot open is between two instructions and ends soon. A handler on
        // this thread has ended, since it interrupted this thread. (A forked child has no other thread, only their
        // count.)
        while running.load(ordering: .sequentiallyConsistent) != 0 && slot.isOfThisProcess { sched_yield() }
        slot.pending.store(0, ordering: .relaxed)
        return slot.descriptor.exchange(-1, ordering: .acquiringAndReleasing)
    }

    static func subscribe(_ slot: SignalSlot, to signal: CInt) throws(SystemError) {
        _ = running.load(ordering: .relaxed)
        notify(0)
        let failure = former.withLock { former -> SystemError? in
            if former.replaced & bit(signal) == 0 {
                var action = action
                var old = sigaction()
                guard sigaction(signal, &action, &old) == 0 else {
                    return SystemError(.sigaction, errno, detail: "signal \(signal)")
                }
                former.actions[Int(signal)] = old
                former.replaced |= bit(signal)
            }
            slot.wanted.bitwiseOr(bit(signal), ordering: .sequentiallyConsistent)
            // After the action is set, so that a signal pending on a thread reaches it.
            watched.bitwiseOr(bit(signal), ordering: .sequentiallyConsistent)
            return nil
        }
        if let failure { throw failure }
    }

    static func unsubscribe(_ slot: SignalSlot, from signal: CInt) {
        let wasLast = former.withLock { former in
            slot.wanted.bitwiseAnd(~bit(signal), ordering: .sequentiallyConsistent)
            slot.pending.bitwiseAnd(~bit(signal), ordering: .sequentiallyConsistent)
            let isWanted = slots.contains { $0.wanted.load(ordering: .relaxed) & bit(signal) != 0 }
            guard !isWanted && former.replaced & bit(signal) != 0 else { return false }
            former.replaced &= ~bit(signal)
            // Before the action is restored, which is not for the library's threads.
            watched.bitwiseAnd(~bit(signal), ordering: .sequentiallyConsistent)
            sigaction(signal, former.actions + Int(signal), nil)
            return true
        }
        if wasLast { LivingLoops.wakeSpawned() }
    }

    /// The action of a watched signal.
    private static var action: sigaction {
        var action = sigaction()
        clinux_set_handler(&action) { SignalRegistry.handle($0) }
        action.sa_flags = CInt(bitPattern: UInt32(SA_RESTART))
        sigfillset(&action.sa_mask)
        return action
    }

    // MARK: In a forked child

    private static let prepareForForks: Void = {
        // The child could not finish an initialization that another thread has begun.
        notify(0)
        former.withLock { _ in _ = watched.load(ordering: .relaxed) }
        clinux_set_in_forked_child { SignalRegistry.beginInForkedChild() }
    }()

    /// The child has none of the loops that watch: signals have the former actions again. Called while signals are
    /// blocked.
    private static func beginInForkedChild() {
        running.store(0, ordering: .relaxed)
        watched.store(0, ordering: .relaxed)
        var index = 0
        while index < count {
            slots[index].wanted.store(0, ordering: .relaxed)
            slots[index].pending.store(0, ordering: .relaxed)
            index += 1
        }
        former.withLock { former in
            var ours = action
            while former.replaced != 0 {
                let signal = CInt(former.replaced.trailingZeroBitCount + 1)
                former.replaced &= ~bit(signal)
                var present = sigaction()
                // Other code may have replaced the action.
                if sigaction(signal, nil, &present) == 0 && clinux_has_same_handler(&present, &ours) {
                    sigaction(signal, former.actions + Int(signal), nil)
                }
            }
        }
    }

    // MARK: When a signal arrives

    /// Called by the kernel, on a thread that it chooses.
    private static func handle(_ signal: CInt) {
        let savedErrno = errno
        running.add(1, ordering: .sequentiallyConsistent)
        notify(bit(signal))
        running.subtract(1, ordering: .sequentiallyConsistent)
        errno = savedErrno
    }

    /// Iterates by index, over a pointer: an iterator could make the runtime build metadata, under a lock, in the
    /// middle of a signal. `subscribe` calls this once without bits, so that a signal handler is never the first to run
    /// any of it.
    private static func notify(_ bits: UInt64) {
        let slots = slots.baseAddress!
        var index = 0
        while index < count {
            let slot = slots[index]
            index += 1
            guard slot.wanted.load(ordering: .sequentiallyConsistent) & bits != 0, slot.isOfThisProcess else {
                continue
            }
            slot.pending.bitwiseOr(bits, ordering: .acquiringAndReleasing)
            var one: UInt64 = 1
            // EAGAIN would mean that the counter is full, and then the loop has been woken already.
            _ = write(slot.descriptor.load(ordering: .acquiring), &one, 8)
        }
    }
}

/// The signals that have the registry's action, as bits, and the previous action of each.
private struct FormerActions {
    var replaced: UInt64 = 0
    /// By the number of the signal. Allocated once, with the registry, and never freed.
    let actions = {
        let actions = UnsafeMutablePointer<sigaction>.allocate(capacity: 65)
        actions.initialize(repeating: sigaction(), count: 65)
        return actions
    }()
}
