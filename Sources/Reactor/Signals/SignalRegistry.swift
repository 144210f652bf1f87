import CLinux
import ReactorLibc
import Synchronization

/// The process's signal actions, and the loops that watch each signal.
///
/// The kernel calls the handler on any thread, between any two instructions. So the handler only reads a fixed table of
/// atomics, sets a bit, and writes an eventfd, all async-signal-safe (signal-safety(7)).
enum SignalRegistry {
    // nonisolated(unsafe): allocated once, never moved or freed; everything reachable through it is atomic.
    nonisolated(unsafe) private static let slots: UnsafeMutableBufferPointer<SignalSlot> = {
        let slots = UnsafeMutableBufferPointer<SignalSlot>.allocate(capacity: count)
        for index in 0..<count { slots.initializeElement(at: index, to: SignalSlot()) }
        return slots
    }()
    private static var count: Int { 64 }
    // Signal handlers running now, on any thread. A slot closes only when there are none.
    private static let running = Atomic<Int>(0)
    /// The actions that the registry has replaced.
    private static let former = LockedValue.ofProcess(FormerActions())

    private static let watched = Atomic<UInt64>(0)
    /// Signals for which no handler has begun since they arrived. They must not be lost when their watches end.
    private static let unhandled = Atomic<UInt64>(0)

    static func bit(_ signal: CInt) -> UInt64 { 1 << UInt64(signal - 1) }

    // A library thread blocks all signals except faults. A signal that the thread raises itself, as a handler may with
    // raise(3), stays pending until it is unblocked.

    /// Unblocks the watched signals, and blocks the others. Called before a loop's thread waits.
    /// - Parameter taken: the signals unblocked on the thread.
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

    /// Delivers watched signals that a job has raised. Called on a pool's thread after the job.
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
                // Stored before the slot wants a signal, and so before a handler reads it.
                slot.generation.store(ForkDetector.generation, ordering: .relaxed)
                return slot
            }
        }
        throw SystemError(.sigaction, ENOSPC, detail: "\(count) loops watch signals already, which is the limit")
    }

    /// Closes the slot. Returns its descriptor, which no signal handler can write any more.
    static func close(_ slot: SignalSlot) -> CInt {
        slot.wanted.store(0, ordering: .sequentiallyConsistent)
        // A handler on another thread that saw the slot open ends soon. A handler on this thread has ended, since it
        // interrupted this thread. (A forked child inherits the count, but not the threads.)
        while slot.isOfThisProcess && running.load(ordering: .sequentiallyConsistent) != 0 { sched_yield() }
        slot.pending.store(0, ordering: .relaxed)
        slot.passedOn.store(0, ordering: .relaxed)
        return slot.descriptor.exchange(-1, ordering: .acquiringAndReleasing)
    }

    static func subscribe(_ slot: SignalSlot, to signal: CInt) throws(SystemError) {
        _ = running.load(ordering: .relaxed)
        _ = notify(0, passesOn: false)
        _ = takeUnhandled(0)
        var isFirst = false
        let failure = former.withLock { former -> SystemError? in
            // An earlier watch's signals have already been passed on.
            slot.pending.bitwiseAnd(~bit(signal), ordering: .sequentiallyConsistent)
            if former.replaced & bit(signal) == 0 {
                var action = action
                var old = sigaction()
                guard sigaction(signal, &action, &old) == 0 else {
                    return SystemError(.sigaction, errno, detail: "signal \(signal)")
                }
                former.actions[Int(signal)] = old
                former.replaced |= bit(signal)
                isFirst = true
            }
            slot.wanted.bitwiseOr(bit(signal), ordering: .sequentiallyConsistent)
            // After the action, which a pending signal must reach.
            watched.bitwiseOr(bit(signal), ordering: .sequentiallyConsistent)
            return nil
        }
        if let failure { throw failure }
        // `handle` may have run with this action but before this slot wanted the signal.
        if isFirst { passOn(signal) }
    }

    /// Ends the slot's interest in `signal`. If it arrived and no handler has begun since, it goes to the other loops
    /// that watch it.
    /// - Returns: true if there are none: `raiseUnhandled` must follow.
    static func unsubscribe(_ slot: SignalSlot, from signal: CInt) -> Bool {
        let wasLast = former.withLock { former in
            let isWanted = slots.contains { $0 !== slot && $0.wanted.load(ordering: .relaxed) & bit(signal) != 0 }
            let isLast = !isWanted && former.replaced & bit(signal) != 0
            if isLast {
                former.replaced &= ~bit(signal)
                // Cleared before the action is restored, which is not for library threads.
                watched.bitwiseAnd(~bit(signal), ordering: .sequentiallyConsistent)
                sigaction(signal, former.actions + Int(signal), nil)
            }
            // Cleared after the action is restored, because `handle` raises the signal again if no slot wants it.
            slot.wanted.bitwiseAnd(~bit(signal), ordering: .sequentiallyConsistent)
            slot.pending.bitwiseAnd(~bit(signal), ordering: .sequentiallyConsistent)
            slot.passedOn.bitwiseAnd(~bit(signal), ordering: .sequentiallyConsistent)
            return isLast
        }
        if !wasLast { passOn(signal) }
        return wasLast
    }

    /// Raises `signal` for the restored action if it arrived and no handler has begun since. Call it outside any lock: the
    /// action may be the program's function.
    static func raiseUnhandled(_ signal: CInt, onLibraryThread: Bool) {
        if takeUnhandled(bit(signal)) { clinux_raise_again(signal, onLibraryThread) }
    }

    // MARK: Unhandled signals

    /// Marks all arrivals of `signal` until now as handled.
    static func noteHandled(_ signal: CInt) {
        unhandled.bitwiseAnd(~bit(signal), ordering: .sequentiallyConsistent)
    }

    static func unhandled(_ signals: UInt64) -> UInt64 {
        signals & unhandled.load(ordering: .sequentiallyConsistent)
    }

    /// Passes an unhandled `signal` to all loops that watch it; some may have had it already. The first handler to
    /// begin settles it for all.
    static func passOn(_ signal: CInt) {
        if unhandled(bit(signal)) == 0 { return }
        running.add(1, ordering: .sequentiallyConsistent)
        _ = notify(bit(signal), passesOn: true)
        running.subtract(1, ordering: .sequentiallyConsistent)
    }

    /// Returns true to one caller, which takes over an unhandled signal.
    private static func takeUnhandled(_ bits: UInt64) -> Bool {
        unhandled.bitwiseAnd(~bits, ordering: .sequentiallyConsistent).oldValue & bits != 0
    }

    private static var action: sigaction {
        var action = sigaction()
        clinux_set_handler(&action) { SignalRegistry.handle($0) }
        // SA_ONSTACK: a foreign thread may have a small stack and an alternate signal stack.
        action.sa_flags = CInt(bitPattern: UInt32(SA_RESTART) | UInt32(SA_ONSTACK))
        sigfillset(&action.sa_mask)
        return action
    }

    // MARK: In a forked child

    private static let prepareForForks: Void = {
        // Run now, since the child could not finish another thread's initialization.
        _ = notify(0, passesOn: false)
        former.withLock { _ in _ = watched.load(ordering: .relaxed) }
        clinux_set_in_forked_child { SignalRegistry.beginInForkedChild() }
    }()

    /// Restores the replaced actions, since the child lacks the watching loops. Called while signals are blocked.
    private static func beginInForkedChild() {
        running.store(0, ordering: .relaxed)
        watched.store(0, ordering: .relaxed)
        unhandled.store(0, ordering: .relaxed)
        var index = 0
        while index < count {
            slots[index].wanted.store(0, ordering: .relaxed)
            slots[index].pending.store(0, ordering: .relaxed)
            slots[index].passedOn.store(0, ordering: .relaxed)
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

    /// Called by the kernel, on any thread.
    private static func handle(_ signal: CInt) {
        let savedErrno = errno
        running.add(1, ordering: .sequentiallyConsistent)
        unhandled.bitwiseOr(bit(signal), ordering: .sequentiallyConsistent)
        if !notify(bit(signal), passesOn: false) { raiseAgain(signal) }
        running.subtract(1, ordering: .sequentiallyConsistent)
        errno = savedErrno
    }

    /// The last watch has ended since the kernel called `handle`, so the signal is for the restored action. If that
    /// action is `handle` again, a new watch is beginning, which `subscribe` notifies, or other code has kept the
    /// address.
    private static func raiseAgain(_ signal: CInt) {
        var (ours, present) = (action, sigaction())
        guard sigaction(signal, nil, &present) == 0, !clinux_has_same_handler(&present, &ours) else { return }
        // The signal is blocked on this thread until this handler returns.
        if takeUnhandled(bit(signal)) { raise(signal) }
    }

    /// Tells each slot that wants one of `signals` that the signal has arrived, or that another slot passes it on.
    ///
    /// Uses an index and a pointer: an iterator could make the runtime build metadata, under a lock, inside a signal
    /// handler. `subscribe` calls this once without bits, so no signal handler is the first to run any of the code.
    /// - Returns: true if there is such a slot.
    private static func notify(_ signals: UInt64, passesOn: Bool) -> Bool {
        let slots = slots.baseAddress!
        var index = 0
        var isWanted = false
        while index < count {
            let slot = slots[index]
            index += 1
            guard slot.wanted.load(ordering: .sequentiallyConsistent) & signals != 0, slot.isOfThisProcess else {
                continue
            }
            isWanted = true
            if passesOn {
                slot.passedOn.bitwiseOr(signals, ordering: .acquiringAndReleasing)
            } else {
                slot.pending.bitwiseOr(signals, ordering: .acquiringAndReleasing)
            }
            var one: UInt64 = 1
            // EAGAIN means that the counter is full; the loop has then been woken.
            _ = write(slot.descriptor.load(ordering: .acquiring), &one, 8)
        }
        return isWanted
    }
}

/// The signals whose action is the registry's, as bits, and the actions before it.
private struct FormerActions {
    var replaced: UInt64 = 0
    /// The actions by signal number. Allocated once, never freed.
    let actions = {
        let actions = UnsafeMutablePointer<sigaction>.allocate(capacity: 65)
        actions.initialize(repeating: sigaction(), count: 65)
        return actions
    }()
}
