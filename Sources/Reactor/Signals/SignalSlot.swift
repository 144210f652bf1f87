import ReactorLibc
import Synchronization

/// A loop's state for the C signal handler: atomics, and a descriptor that outlives every call of the handler.
final class SignalSlot: Sendable {
    // `wanted` holds the watched signals and `pending` the arrived ones; `descriptor` is the eventfd to write (−1 marks
    // a free slot).
    let wanted = Atomic<UInt64>(0)
    let pending = Atomic<UInt64>(0)
    /// Signals whose watch ended before its handler ran. This loop delivers those that are still unhandled.
    let passedOn = Atomic<UInt64>(0)
    let descriptor = Atomic<CInt>(-1)
    // The fork generation of the process that owns the slot. A signal to a forked child must not wake the parent
    // through the shared descriptor.
    let generation = Atomic<CInt>(0)

    var isOfThisProcess: Bool { generation.load(ordering: .relaxed) == ForkDetector.generation }
}
