import CLinux

// Further loops on a thread, used as the hosts of a simulated network, which turns them.

extension EventLoop {
    /// Makes a loop that is current only during `perform` and `turn`. End the loop with `endInner`, on this thread.
    package static func makeInner(clock: VirtualClock, syscalls: Syscalls) -> EventLoop {
        let loop = EventLoop(clock: .virtual(clock), syscalls: syscalls)
        loop.scope = .function(within: ofCurrentThread)
        LoopRegistry.add(loop)
        return loop
    }

    package func perform<Value>(_ body: () throws -> Value) rethrows -> Value { try whileDriven(body) }

    /// Ends a loop made by `makeInner` like a killed process: releases everything, reports nothing.
    package func endInner() {
        let outer = clinux_get_current_loop()
        clinux_set_current_loop(Unmanaged.passUnretained(self).toOpaque())
        vanishes = true
        close()
        clinux_set_current_loop(outer)
        // Otherwise a handler on this loop has ended it, and the turn leaves it.
        if depth == 0 { leaveForGood() }
    }

    /// True inside `endInner`.
    package static var isVanishingOnThisThread: Bool { withExisting { $0.vanishes } ?? false }

    /// True when pool threads work for this loop, so the virtual time must not jump.
    package var awaitsThreads: Bool { shared.work.externalWork.isBusy }

    /// The time at which the wait must end, apart from timers.
    package var limitOfWait: Int64 { hooks.limit }
}
