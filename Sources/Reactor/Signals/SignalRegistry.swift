import CLinux
import Glibc
import Synchronization

/// What a loop knows of its signals: the watches, and the door through which the signal handler reaches it.
struct LoopSignals {
    struct Handler {
        let id: Int
        let signal: CInt
        let body: () -> Void
        let origin: CallSite
        var isReferenced: Bool
    }

    private(set) var handlers: [Handler] = []
    private var lastID = 0
    /// Watches whose signal has come and which have not been called yet, in the order of their calls.
    private var arrived: [Handler] = []
    private var nextArrived = 0
    var door: SignalSlot?

    var hasReferenced: Bool { handlers.contains { $0.isReferenced } }

    func contains(_ id: Int) -> Bool { handlers.contains { $0.id == id } }

    /// The door must be open.
    mutating func add(
        _ signal: CInt, _ body: @escaping () -> Void, _ origin: CallSite
    ) throws(SystemError) -> Int {
        if let door, !handlers.contains(where: { $0.signal == signal }) {
            try SignalRegistry.subscribe(door, to: signal)
        }
        lastID += 1
        handlers.append(Handler(id: lastID, signal: signal, body: body, origin: origin, isReferenced: true))
        return lastID
    }

    /// Answers the handler, for the caller to release when all is whole again.
    mutating func remove(_ id: Int) -> Handler? {
        guard let index = handlers.firstIndex(where: { $0.id == id }) else { return nil }
        let removed = handlers.remove(at: index)
        if let door, !handlers.contains(where: { $0.signal == removed.signal }) {
            SignalRegistry.unsubscribe(door, from: removed.signal)
        }
        return removed
    }

    mutating func setReferenced(_ id: Int, _ isReferenced: Bool) {
        guard let index = handlers.firstIndex(where: { $0.id == id }) else { return }
        handlers[index].isReferenced = isReferenced
    }

    /// Whether a watch is still to be called for what has come.
    var hasArrived: Bool { nextArrived < arrived.count }

    /// The next watch to call, and whether there may be more. One by one, and kept here meanwhile: a turn inside the handler
    /// delivers the rest.
    mutating func takeNext() -> Handler? {
        let pending = door?.pending.exchange(0, ordering: .acquiring) ?? 0
        if pending != 0 { arrived += handlers.filter { pending & SignalRegistry.bit($0.signal) != 0 } }
        while hasArrived {
            let next = arrived[nextArrived]
            nextArrived += 1
            if nextArrived == arrived.count {
                arrived = []
                nextArrived = 0
            }
            // A handler before it may have cancelled it.
            if contains(next.id) { return next }
        }
        return nil
    }

    /// Forgets what has come; for the caller to release.
    mutating func forgetArrived() -> [Handler] {
        defer {
            arrived = []
            nextArrived = 0
        }
        return arrived
    }
}

/// What the C signal handler may touch for one loop: atomics, and a descriptor that outlives every call of it.
final class SignalSlot: Sendable {
    // Signals this loop waits for, those that have come, and the eventfd to write (−1: the door is free).
    let wanted = Atomic<UInt64>(0)
    let pending = Atomic<UInt64>(0)
    let descriptor = Atomic<CInt>(-1)
    // Of the process that has opened the door. In a forked child the descriptor is the parent's, which a signal to the child
    // must not wake.
    let generation = Atomic<CInt>(0)

    var isOfThisProcess: Bool { generation.load(ordering: .relaxed) == ForkDetector.generation }
}

/// The process's signal actions, and which loops want to know.
///
/// The handler that the kernel calls runs on any thread at any instruction, so it only reads a fixed table of
/// atomics, sets a bit, and writes an eventfd: all of it async-signal-safe (signal-safety(7)).
enum SignalRegistry {
    // nonisolated(unsafe): allocated once, never moved or freed; all that is reachable through it is atomic.
    nonisolated(unsafe) private static let doors: UnsafeMutableBufferPointer<SignalSlot> = {
        let doors = UnsafeMutableBufferPointer<SignalSlot>.allocate(capacity: count)
        for index in 0..<count { doors.initializeElement(at: index, to: SignalSlot()) }
        return doors
    }()
    private static var count: Int { 64 }
    // Handlers that are running at this moment, on any thread: a door is closed only when there is none.
    private static let running = Atomic<Int>(0)
    private static let previous = Mutex<[CInt: sigaction]>([:])

    static func bit(_ signal: CInt) -> UInt64 { 1 << UInt64(signal - 1) }

    static func open(_ fd: CInt) throws(SystemError) -> SignalSlot {
        for door in doors {
            if door.descriptor.compareExchange(expected: -1, desired: fd, ordering: .acquiringAndReleasing).exchanged {
                // Before anything is wanted, and so before a handler asks.
                door.generation.store(ForkDetector.generation, ordering: .relaxed)
                return door
            }
        }
        throw SystemError(.sigaction, ENOSPC, detail: "\(count) loops watch signals already, which is the limit")
    }

    /// Answers the door's descriptor, which no handler can write any more.
    static func close(_ door: SignalSlot) -> CInt {
        door.wanted.store(0, ordering: .sequentiallyConsistent)
        // A handler on another thread that saw the door open is between two instructions and ends soon; one on this
        // thread has ended, since it interrupted us.
        // (In a forked child there is no other thread, only its count.)
        while running.load(ordering: .sequentiallyConsistent) != 0 && door.isOfThisProcess { sched_yield() }
        door.pending.store(0, ordering: .relaxed)
        return door.descriptor.exchange(-1, ordering: .acquiringAndReleasing)
    }

    static func subscribe(_ door: SignalSlot, to signal: CInt) throws(SystemError) {
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
            door.wanted.bitwiseOr(bit(signal), ordering: .sequentiallyConsistent)
            return nil
        }
        if let failure { throw failure }
    }

    static func unsubscribe(_ door: SignalSlot, from signal: CInt) {
        previous.withLock { previous in
            door.wanted.bitwiseAnd(~bit(signal), ordering: .sequentiallyConsistent)
            door.pending.bitwiseAnd(~bit(signal), ordering: .sequentiallyConsistent)
            let isWanted = doors.contains { $0.wanted.load(ordering: .relaxed) & bit(signal) != 0 }
            guard !isWanted, var old = previous.removeValue(forKey: signal) else { return }
            sigaction(signal, &old, nil)
        }
    }

    /// Called by the kernel, on whichever thread it chose.
    private static func handle(_ signal: CInt) {
        let savedErrno = errno
        running.add(1, ordering: .sequentiallyConsistent)
        notify(bit(signal))
        running.subtract(1, ordering: .sequentiallyConsistent)
        errno = savedErrno
    }

    /// Index by index, over a pointer: an iterator could make the runtime build metadata, under a lock, in the
    /// middle of a signal. `subscribe` runs it once with no bits so that nothing here is ever done for the first time.
    private static func notify(_ bits: UInt64) {
        let doors = doors.baseAddress!
        var index = 0
        while index < count {
            let door = doors[index]
            index += 1
            guard door.wanted.load(ordering: .sequentiallyConsistent) & bits != 0, door.isOfThisProcess else {
                continue
            }
            door.pending.bitwiseOr(bits, ordering: .acquiringAndReleasing)
            var one: UInt64 = 1
            // EAGAIN would mean that the counter is full, and then the loop is awake already.
            _ = write(door.descriptor.load(ordering: .acquiring), &one, 8)
        }
    }
}
