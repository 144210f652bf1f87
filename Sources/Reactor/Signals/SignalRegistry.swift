import CLinux
import Glibc
import Synchronization

/// A loop's signals: its watches, and the slot through which the signal handler reaches the loop.
struct LoopSignals {
    private(set) var handlers: [SignalHandler] = []
    private var lastID = 0
    var slot: SignalSlot?

    var hasReferenced: Bool { handlers.contains { $0.isReferenced } }

    func contains(_ id: Int) -> Bool { handlers.contains { $0.id == id } }

    /// The slot must be open.
    mutating func add(
        _ signal: CInt, _ body: @escaping () -> Void, _ origin: CallSite
    ) throws(SystemError) -> Int {
        if let slot, !handlers.contains(where: { $0.signal == signal }) {
            try SignalRegistry.subscribe(slot, to: signal)
        }
        lastID += 1
        handlers.append(SignalHandler(id: lastID, signal: signal, body: body, origin: origin))
        return lastID
    }

    /// Returns the removed handler, for the caller to end when the state is consistent again.
    mutating func remove(_ id: Int) -> SignalHandler? {
        guard let index = handlers.firstIndex(where: { $0.id == id }) else { return nil }
        let removed = handlers.remove(at: index)
        if let slot, !handlers.contains(where: { $0.signal == removed.signal }) {
            SignalRegistry.unsubscribe(slot, from: removed.signal)
        }
        return removed
    }

    func setReferenced(_ id: Int, _ isReferenced: Bool) {
        handlers.first { $0.id == id }?.isReferenced = isReferenced
    }

    /// Takes the signals that have arrived, and queues the watches of each, in the order in which they were made. A watch
    /// that is still queued is not queued twice, so however many signals arrive, a watch has one job at most.
    func enqueueArrived(into queue: inout JobQueue) {
        guard let pending = slot?.pending.exchange(0, ordering: .acquiring), pending != 0 else { return }
        for handler in handlers where pending & SignalRegistry.bit(handler.signal) != 0 && !handler.isQueued {
            handler.isQueued = true
            queue.append(.passRetained(handler))
        }
    }
}

/// A signal watch, which is itself the job that calls it.
///
/// Invariant: used on the loop's thread only.
final class SignalHandler: Job {
    let id: Int
    let signal: CInt
    let origin: CallSite
    /// `nil` once the watch has ended.
    private var body: (() -> Void)?
    var isReferenced = true
    /// Whether the loop's ready queue contains this job.
    fileprivate(set) var isQueued = false

    init(id: Int, signal: CInt, body: @escaping () -> Void, origin: CallSite) {
        self.id = id
        self.signal = signal
        self.body = body
        self.origin = origin
        super.init()
    }

    /// Releases the closure, also if the job is queued. Call it when the list of watches is consistent.
    func end() {
        let body = body.take()
        withExtendedLifetime(body) {}
    }

    override func run() {
        // A signal that arrives while the handler runs is reported once more.
        isQueued = false
        // Bound to a name, since the handler may cancel its own watch.
        let body = body
        body?()
    }

    override var kind: HandlerKind { .signal }
    override var startedAt: CallSite? { origin }
    // A loop that ends has no use for the signals that have arrived.
    override var isReportedUndelivered: Bool { false }
}

/// The state of one loop that the C signal handler may access: atomics, and a descriptor that outlives every run of the
/// handler.
final class SignalSlot: Sendable {
    // The signals that this loop waits for, those that have arrived, and the eventfd to write (−1: the slot is free).
    let wanted = Atomic<UInt64>(0)
    let pending = Atomic<UInt64>(0)
    let descriptor = Atomic<CInt>(-1)
    // The fork generation of the process that has opened the slot. In a forked child the descriptor is the parent's,
    // and a signal to the child must not wake the parent.
    let generation = Atomic<CInt>(0)

    var isOfThisProcess: Bool { generation.load(ordering: .relaxed) == ForkDetector.generation }
}

/// The process's signal actions, and the loops that watch each signal.
///
/// The handler that the kernel calls runs on any thread at any instruction, so it only reads a fixed table of
/// atomics, sets a bit, and writes an eventfd: all of it async-signal-safe (signal-safety(7)).
enum SignalRegistry {
    // nonisolated(unsafe): allocated once, never moved or freed; everything that is reachable through it is atomic.
    nonisolated(unsafe) private static let slots: UnsafeMutableBufferPointer<SignalSlot> = {
        let slots = UnsafeMutableBufferPointer<SignalSlot>.allocate(capacity: count)
        for index in 0..<count { slots.initializeElement(at: index, to: SignalSlot()) }
        return slots
    }()
    private static var count: Int { 64 }
    // The number of signal handlers that are running now, on any thread: a slot is closed only when there are none.
    private static let running = Atomic<Int>(0)
    private static let previous = Mutex<[CInt: sigaction]>([:])

    static func bit(_ signal: CInt) -> UInt64 { 1 << UInt64(signal - 1) }

    static func open(_ fd: CInt) throws(SystemError) -> SignalSlot {
        for slot in slots {
            if slot.descriptor.compareExchange(expected: -1, desired: fd, ordering: .acquiringAndReleasing).exchanged {
                // Stored before the slot wants any signal, and so before a handler reads it.
                slot.generation.store(ForkDetector.generation, ordering: .relaxed)
                return slot
            }
        }
        throw SystemError(.sigaction, ENOSPC, detail: "\(count) loops watch signals already, which is the limit")
    }

    /// Closes the slot and returns its descriptor, which no signal handler can write any more.
    static func close(_ slot: SignalSlot) -> CInt {
        slot.wanted.store(0, ordering: .sequentiallyConsistent)
        // A handler on another thread that saw the slot open is between two instructions and ends soon. A handler on
        // this thread has ended, since it interrupted this thread. (A forked child has no other thread, only their
        // count.)
        while running.load(ordering: .sequentiallyConsistent) != 0 && slot.isOfThisProcess { sched_yield() }
        slot.pending.store(0, ordering: .relaxed)
        return slot.descriptor.exchange(-1, ordering: .acquiringAndReleasing)
    }

    static func subscribe(_ slot: SignalSlot, to signal: CInt) throws(SystemError) {
        _ = running.load(ordering: .relaxed)
        notify(0)
        let failure = previous.withLock { previous -> SystemError? in
            if previous[signal] == nil {
                var action = sigaction()
                action.__sigaction_handler.sa_handler = { SignalRegistry.handle($0) }
                action.sa_flags = CInt(bitPattern: UInt32(SA_RESTART))
                sigfillset(&action.sa_mask)
                var old = sigaction()
                guard sigaction(signal, &action, &old) == 0 else {
                    return SystemError(.sigaction, errno, detail: "signal \(signal)")
                }
                previous[signal] = old
            }
            slot.wanted.bitwiseOr(bit(signal), ordering: .sequentiallyConsistent)
            return nil
        }
        if let failure { throw failure }
    }

    static func unsubscribe(_ slot: SignalSlot, from signal: CInt) {
        previous.withLock { previous in
            slot.wanted.bitwiseAnd(~bit(signal), ordering: .sequentiallyConsistent)
            slot.pending.bitwiseAnd(~bit(signal), ordering: .sequentiallyConsistent)
            let isWanted = slots.contains { $0.wanted.load(ordering: .relaxed) & bit(signal) != 0 }
            guard !isWanted, var old = previous.removeValue(forKey: signal) else { return }
            sigaction(signal, &old, nil)
        }
    }

    /// Called by the kernel, on a thread that it chooses.
    private static func handle(_ signal: CInt) {
        let savedErrno = errno
        running.add(1, ordering: .sequentiallyConsistent)
        notify(bit(signal))
        running.subtract(1, ordering: .sequentiallyConsistent)
        errno = savedErrno
    }

    /// Iterates by index, over a pointer: an iterator could make the runtime build metadata, under a lock, in the
    /// middle of a signal. `subscribe` calls this once without bits, so that a signal handler is never the first to run
    /// any of it.
    private static func notify(_ bits: UInt64) {
        let slots = slots.baseAddress!
        var index = 0
        while index < count {
            let slot = slots[index]
            index += 1
            guard slot.wanted.load(ordering: .sequentiallyConsistent) & bits != 0, slot.isOfThisProcess else {
                continue
            }
            slot.pending.bitwiseOr(bits, ordering: .acquiringAndReleasing)
            var one: UInt64 = 1
            // EAGAIN would mean that the counter is full, and then the loop has been woken already.
            _ = write(slot.descriptor.load(ordering: .acquiring), &one, 8)
        }
    }
}
