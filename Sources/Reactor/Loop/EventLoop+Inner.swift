import CLinux

// Further loops on a thread: the hosts of a simulated network, turned by their driver.

extension EventLoop {
    /// Makes a loop that is current only during `perform` and `turn`. End it with `endInner`, on this thread.
    package static func makeInner(clock: VirtualClock, syscalls: Syscalls) -> EventLoop {
        let loop = EventLoop(clock: .virtual(clock), syscalls: syscalls)
        loop.scope = .function(within: ofCurrentThread)
        LoopRegistry.add(loop)
        return loop
    }

    package func perform<Value>(_ body: () throws -> Value) rethrows -> Value { try whileDriven(body) }

    /// Ends a loop of `makeInner` like a killed process: releases everything, reports nothing.
    package func endInner() {
        let outer = clinux_get_current_loop()
        clinux_set_current_loop(Unmanaged.passUnretained(self).toOpaque())
        vanishes = true
        close()
        clinux_set_current_loop(outer)
        // At a greater depth, a handler of this loop has ended it, and the turn leaves it.
        if depth == 0 { leaveForGood() }
    }

    /// True inside `endInner`, whose releases are not reported.
    package static var isVanishingOnThisThread: Bool { withExisting { $0.vanishes } ?? false }

    /// True when pool threads work for this loop, so virtual time must not jump.
    package var awaitsThreads: Bool { shared.work.externalWork.isBusy }

    /// For a hook before a wait: the moment at which the wait must end, apart from timers.
    package var limitOfWait: Int64 { hooks.limit }
}
