import CLinux

// Further loops on a thread: the hosts of a simulated network, which their driver turns.

extension EventLoop {
    /// Makes a loop on this thread that becomes the current one only during `perform` and `turn`. The caller must end
    /// it by `endInner`, on this thread.
    package static func makeInner(clock: VirtualClock, syscalls: Syscalls) -> EventLoop {
        let loop = EventLoop(clock: .virtual(clock), syscalls: syscalls)
        loop.scope = .function(within: ofCurrentThread)
        LivingLoops.add(loop)
        return loop
    }

    /// Runs `body` as a handler of this loop.
    package func perform<Value>(_ body: () throws -> Value) rethrows -> Value { try whileDriven(body) }

    /// Ends a loop made by `makeInner`, like a killed process: everything that waits there is released, and nothing is
    /// reported.
    package func endInner() {
        let outer = clinux_get_current_loop()
        clinux_set_current_loop(Unmanaged.passUnretained(self).toOpaque())
        vanishes = true
        close()
        clinux_set_current_loop(outer)
        // Otherwise a handler of this loop has ended it, and the turn leaves it.
        if depth == 0 { leaveForGood() }
    }

    /// Whether the calling thread is in `endInner`, whose releases are not reported.
    package static var isVanishingOnThisThread: Bool { withExisting { $0.vanishes } ?? false }

    /// Whether threads of pools work for this loop, so that virtual time must not jump.
    package var awaitsThreads: Bool { shared.work.externalWork.isBusy }

    /// For a hook before a wait: the moment at which the wait must end, besides the deadlines of timers.
    package var limitOfWait: Int64 { hooks.limit }
}
