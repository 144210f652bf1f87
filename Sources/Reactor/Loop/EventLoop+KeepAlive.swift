// What keeps the loop alive, and what may still wake it: see `KeepAlive`.

extension EventLoop {
    /// Whether anything is left that the loop waits for.
    public var isAlive: Bool {
        // First: what such work has posted to the loop before it ended must be seen in the mailbox then.
        shared.work.awaitsExternalWork || isReady || timers.heap.referenced > 0 || poller.referenced > 0
            || !keepAlive.holds.isEmpty || signals.hasReferenced
    }

    /// Whether anything on this loop, referenced or not, or work that it knows of, could still make something happen; if not,
    /// only another thread can.
    package var canWakeItself: Bool {
        isAlive || hasSources || requestingLoopAwaitsOthers || shared.work.hasDispatchedJobs
    }

    /// Whether anything waits on this loop that is not ready.
    var hasWaiters: Bool { waitingHandlers > 0 || hasSources }

    /// Whether there are timers, descriptors or signals that the loop waits for, referenced or not.
    private var hasSources: Bool { !timers.heap.isEmpty || poller.waiting > 0 || !signals.handlers.isEmpty }

    /// Handlers that wait on this loop; see `handlerDidAttach`.
    package var waitingHandlers: Int { keepAlive.waitingHandlers }

    /// A handler on this loop begins to wait for what another may bring, or has come to its end.
    @inlinable @inline(__always)
    package func handlerDidAttach() { keepAlive.waitingHandlers &+= 1 }
    @inlinable @inline(__always)
    package func handlerDidDetach() { keepAlive.waitingHandlers &-= 1 }
}
