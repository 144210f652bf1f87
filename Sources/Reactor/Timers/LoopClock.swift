import ReactorLibc

package enum LoopClock {
    case monotonic
    case virtual(VirtualClock)

    var isVirtual: Bool {
        if case .virtual = self { true } else { false }
    }

    // Not inlined, because it would take more code than the rare branches that read the time.
    @inline(never)
    package var now: LoopInstant {
        switch self {
        case .monotonic:
            var time = timespec()
            clock_gettime(CLOCK_MONOTONIC, &time)
            return LoopInstant(nanoseconds: Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec))
        case .virtual(let clock):
            return clock.now
        }
    }
}
