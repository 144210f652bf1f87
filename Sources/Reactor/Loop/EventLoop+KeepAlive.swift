// The reasons that keep the loop alive, and the work that may still wake it: see `KeepAlive`.

extension EventLoop {
    /// `true` while the loop waits for anything. `run()` returns when this is false.
    public var isAlive: Bool { isAnythingLeft }

    @inline(__always)
    private var isAnythingLeft: Bool {
        // Most loops watch a descriptor. Otherwise external work is checked first: jobs that it has posted before it
        // ended must then be seen in the mailbox.
        poller.referenced > 0 || shared.work.externalWork.isUnderWay || isReady || timers.referenced > 0
            || !keepAlive.holds.isEmpty || signals.hasReferenced
    }

    /// Whether anything on this loop, referenced or not, or any work that it knows of, can still cause a job. If not,
    /// only another thread can.
    package var canWakeItself: Bool {
        isAnythingLeft || sourceCount > keepAlive.backgroundSources || requestingLoopAwaitsOthers
            || shared.work.dispatchedJobs.load(ordering: .relaxed) > 0
    }

    /// Whether only work of other threads can make something happen on this loop.
    package var waitsForOthersOnly: Bool {
        !isReady && keepAlive.holds.isEmpty && sourceCount <= keepAlive.backgroundSources
    }

    /// Whether anything on this loop waits that is not ready, or is called when the loop waits.
    var hasWaiters: Bool { waitingHandlers > 0 || sourceCount > 0 || !hooks.isEmpty || !keepAlive.holds.isEmpty }

    /// The number of timers, descriptors and signals that the loop waits for, referenced or not.
    private var sourceCount: Int { timers.count + poller.waiting + signals.count }

    /// Adds `change` to the number of unreferenced sources that no program's promise waits for.
    package func changeBackgroundSources(by change: Int) { keepAlive.backgroundSources += change }

    /// Handlers that wait on this loop; see `handlerDidAttach`.
    package var waitingHandlers: Int { keepAlive.waitingHandlers }

    /// Counts a handler on this loop that begins to wait for a result; `handlerDidDetach` is the counterpart.
    @inlinable @inline(__always)
    package func handlerDidAttach() { keepAlive.waitingHandlers &+= 1 }
    @inlinable @inline(__always)
    package func handlerDidDetach() { keepAlive.waitingHandlers &-= 1 }

    /// Notes a waiter of this loop whose promise another thread may settle; see `OutsideWaiters`.
    /// - Returns: the number for `removeOutsideWaiter`; zero if `makeRoomForOutsideWaiter` must be called first.
    @inlinable @inline(__always)
    package func addOutsideWaiter(_ waiter: Unmanaged<Job>) -> UInt32 { outsideWaiters.add(waiter) }

    /// - Returns: false if the loop is ending: a waiter must then be discarded.
    package func makeRoomForOutsideWaiter() -> Bool { outsideWaiters.grow() }

    /// - Returns: the waiter that has the number from now on, possibly the removed one itself.
    @inlinable @inline(__always)
    package func removeOutsideWaiter(_ number: UInt32) -> Unmanaged<Job> { outsideWaiters.remove(number) }
}
