import ReactorLibc
import Synchronization

/// The state of one loop that the C signal handler may access: atomics, and a descriptor that outlives every run of the
/// handler.
final class SignalSlot: Sendable {
    // The signals that this loop watches, those that have arrived, and the eventfd to write (−1: the slot is free).
    let wanted = Atomic<UInt64>(0)
    let pending = Atomic<UInt64>(0)
    /// Signals that arrived for a watch which ended before its handler ran: this loop delivers those that are still
    /// unhandled.
    let passedOn = Atomic<UInt64>(0)
    let descriptor = Atomic<CInt>(-1)
    // The fork generation of the process that has opened the slot. In a forked child the descriptor is the parent's,
    // and a signal to the child must not wake the parent.
    let generation = Atomic<CInt>(0)

    var isOfThisProcess: Bool { generation.load(ordering: .relaxed) == ForkDetector.generation }
}
