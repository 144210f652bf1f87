// See `KeepAlive`.

extension EventLoop {
    /// True while the loop waits for anything. `run()` returns once this is false.
    public var isAlive: Bool { isAnythingLeft }

    @inline(__always)
    private var isAnythingLeft: Bool {
        // Most loops watch a descriptor. External work must be read before the mailbox, to see jobs that it
        // posted before it ended.
        poller.referenced > 0 || shared.work.externalWork.isUnderWay || isReady || timers.referenced > 0
            || !keepAlive.holds.isEmpty || signals.hasReferenced
    }

    /// True when this loop, or work that it knows of, can still cause a job. Unreferenced sources count too.
    package var canWakeItself: Bool {
        isAnythingLeft || sourceCount > keepAlive.backgroundSources || requestingLoopAwaitsOthers
            || shared.work.dispatchedJobs.load(ordering: .relaxed) > 0
    }

    /// True when only other threads can make something happen here.
    package var waitsForOthersOnly: Bool {
        !isReady && keepAlive.holds.isEmpty && sourceCount <= keepAlive.backgroundSources
    }

    /// True when anything waits here that is not ready, or a hook exists.
    var hasWaiters: Bool { waitingHandlers > 0 || sourceCount > 0 || !hooks.isEmpty || !keepAlive.holds.isEmpty }

    /// Includes unreferenced ones.
    private var sourceCount: Int { timers.count + poller.waiting + signals.count }

    /// Counts unreferenced sources that no promise in the program waits for.
    package func changeBackgroundSources(by change: Int) { keepAlive.backgroundSources += change }

    package var waitingHandlers: Int { keepAlive.waitingHandlers }

    @inlinable @inline(__always)
    package func handlerDidAttach() { keepAlive.waitingHandlers &+= 1 }
    @inlinable @inline(__always)
    package func handlerDidDetach() { keepAlive.waitingHandlers &-= 1 }

    /// Notes a waiter whose promise another thread may settle; see `CrossThreadWaiters`.
    /// - Returns: the number for `removeCrossThreadWaiter`, or zero if `makeRoomForCrossThreadWaiter` must be called
    ///   first.
    @inlinable @inline(__always)
    package func addCrossThreadWaiter(_ waiter: Unmanaged<Job>) -> UInt32 { crossThreadWaiters.add(waiter) }

    /// - Returns: false if the loop is ending; then discard the waiter.
    package func makeRoomForCrossThreadWaiter() -> Bool { crossThreadWaiters.grow() }

    /// - Returns: the waiter that now has the number, possibly the removed one.
    @inlinable @inline(__always)
    package func removeCrossThreadWaiter(_ number: UInt32) -> Unmanaged<Job> { crossThreadWaiters.remove(number) }
}
