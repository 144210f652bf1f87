import ReactorLibc
import Synchronization

/// A loop's state for the C signal handler: atomics, and a descriptor that outlives every run of the handler.
final class SignalSlot: Sendable {
    // The watched signals, the arrived ones, and the eventfd to write (−1 marks a free slot).
    let wanted = Atomic<UInt64>(0)
    let pending = Atomic<UInt64>(0)
    /// Signals of a watch that ended before its handler ran. This loop delivers those still unhandled.
    let passedOn = Atomic<UInt64>(0)
    let descriptor = Atomic<CInt>(-1)
    // The fork generation of the slot's process. A signal to a forked child must not wake the parent through the shared
    // descriptor.
    let generation = Atomic<CInt>(0)

    var isOfThisProcess: Bool { generation.load(ordering: .relaxed) == ForkDetector.generation }
}
