import Promises
import Reactor
import ReactorLibc

/// The memory of a listener's or a pool's connections on one loop, and its limit; see `ServeOptions.memoryLimit`.
/// Accessed only on the loop's thread.
///
/// The sum is updated when a connection begins to hold more, and when it waits again. Before a connection is ended, all
/// connections are examined: usually at the end of the turn, which may have consumed the input. If the sum is a
/// sixteenth above the limit, they are examined right after the current event or job, since a turn may have hundreds of
/// these.
final class MemoryBudget: Inspected {
    private let limit: Int
    /// The sum above which the connections are examined before the end of the turn.
    private let urgentLimit: Int
    private let loop: EventLoop
    private let didEvict: () -> Void
    private let members: () -> [Member]
    private var held = 0
    private var hasJob = false
    private var hasUrgentJob = false
    /// The shared memory that waits in queues, keyed by its start address.
    private var shared: [UnsafeRawPointer: SharedMemory] = [:]

    /// A connection, and the work that ends with it.
    typealias Member = (connection: Connection, work: PromiseCore?)

    /// - Parameters:
    ///   - didEvict: called for each connection that is about to be ended.
    ///   - members: returns the connections that share the budget.
    init(
        _ limit: Int, on loop: EventLoop, didEvict: @escaping () -> Void, of members: @escaping () -> [Member]
    ) {
        self.limit = limit
        urgentLimit = limit.addingReportingOverflow(limit / 16).overflow ? .max : limit + limit / 16
        self.loop = loop
        self.didEvict = didEvict
        self.members = members
        InspectedObjects.add(self, ofLoop: loop.serial)
    }

    deinit { InspectedObjects.remove(self) }

    package var facts: [InspectedFacts] { [InspectedFacts(.memory, "connections", limit: limit, inUse: held)] }

    func begin(for connection: Connection) { connection.ensuredColdState.memory = MemoryShare(self) }

    /// Notes that a connection holds `change` more bytes.
    func note(_ change: Int) {
        held += change
        // Checks only after growth, so that a connection that ends with its loop leaves no job.
        if change > 0 && held > limit { enforceLater() }
    }

    // In a job, not inside the connection's read or write.
    @inline(never)
    private func enforceLater() {
        if held > urgentLimit, !hasUrgentJob {
            hasUrgentJob = true
            loop.enqueueNext(
                ClosureJob { [self] in
                    hasUrgentJob = false
                    enforce()
                })
        } else if !hasJob {
            hasJob = true
            loop.enqueueAtEndOfTurn(
                ClosureJob { [self] in
                    hasJob = false
                    enforce()
                })
        }
    }

    /// Counts each part once, however many queues hold it.
    func hold(_ bytes: SharedBytes) {
        guard case (let address?, let size) = bytes.extent else { return }
        note(shared[address, default: SharedMemory(size: size)].hold(bytes.range))
    }

    /// Any thread may call this once the loop has ended.
    func release(_ bytes: SharedBytes) {
        guard !loop.hasEnded, let address = bytes.extent.address, var memory = shared.removeValue(forKey: address)
        else { return }
        let change = memory.release(bytes.range)
        if !memory.isEmpty { shared[address] = memory }
        note(change)
    }

    /// Returns the memory that no longer counts once a queue has released `bytes`.
    func memoryFreed(by bytes: SharedBytes) -> Int {
        bytes.extent.address.flatMap { shared[$0]?.memoryFreed(by: bytes.range) } ?? 0
    }

    /// Any thread may call this once the loop has ended.
    func end(_ count: Int) { if !loop.hasEnded { note(-count) } }

    /// If the connections hold too much, ends the largest, until the rest hold seven eighths of the limit, so that the
    /// next check is not due at once.
    private func enforce() {
        if held <= limit { return }
        let members = members()
        for member in members { member.connection.noteHeldMemory() }
        let total = held
        if total <= limit { return }
        // Shared memory is freed with the last queue that holds it, so connections that hold nothing else come last.
        let largest = members.map { (freed: $0.connection.memoryOfItsOwn, held: $0.connection.heldMemory, $0) }
            .sorted { ($0.freed, $0.held) > ($1.freed, $1.held) }
        for (_, count, member) in largest {
            if held <= limit / 8 * 7 { return }
            // A handler of the previous connection may have closed this one.
            guard member.connection.lifecycle.hasDescriptor else { continue }
            let detail = "all connections hold \(total) bytes in memory, and this one \(count); the limit is \(limit)"
            end(member, detail)
        }
    }

    private func end(_ member: Member, _ detail: String) {
        let connection = member.connection
        let call = connection.queuedBytes > 0 ? connection.writeCall : connection.readCall
        let error = SystemError(call, ENOBUFS, detail: detail)
        // A pending read or write notifies the handler.
        let isNotified = PeerWatching.hasPendingOperation(connection)
        didEvict()
        connection.abort(because: error)
        // Cancelled, because the work may keep the peer's bytes.
        if !isNotified { member.work?.cancel(with: error) }
    }
}

/// A block of shared memory, parts of which are in queues. Only these parts count, since the program may own the block
/// anyway.
private struct SharedMemory {
    let size: Int
    /// The number of queues, or entries of a queue, that hold each part.
    private var parts: [Range<Int>: Int] = [:]
    /// The total size of the parts, which may overlap.
    private var sum = 0

    init(size: Int) { self.size = size }

    var isEmpty: Bool { parts.isEmpty }
    private var count: Int { min(sum, size) }

    /// - Returns: the change of the counted memory.
    mutating func hold(_ part: Range<Int>) -> Int {
        let before = count
        parts[part, default: 0] += 1
        if parts[part] == 1 { sum += part.count }
        return count - before
    }

    /// Returns the memory that `release` would free. A trial on a copy would copy all parts for each entry of a queue.
    func memoryFreed(by part: Range<Int>) -> Int {
        parts[part] == 1 ? count - min(sum - part.count, size) : 0
    }

    /// - Returns: the change of the counted memory.
    mutating func release(_ part: Range<Int>) -> Int {
        guard let holders = parts[part] else { return 0 }
        let before = count
        parts[part] = holders == 1 ? nil : holders - 1
        if holders == 1 { sum -= part.count }
        return count - before
    }
}

/// The memory that one connection holds for its peer's bytes, and for writes that the kernel has not taken. Accessed on
/// the loop's thread.
final class MemoryShare {
    /// `nil` once the connection is closed.
    private(set) var budget: MemoryBudget?
    /// The budget's count for this connection.
    private var noted = 0
    /// The memory of the decoder of the last read, beside the buffered input.
    var inDecoder = 0
    /// Memory kept elsewhere: see `KeptBytes`.
    private(set) var kept = 0

    init(_ budget: MemoryBudget) { self.budget = budget }

    func note(_ held: Int) {
        let change = held - noted
        guard change != 0, let budget else { return }
        noted = held
        budget.note(change)
    }

    fileprivate func keep(_ change: Int) {
        kept += change
        note(noted + change)
    }

    func end() { budget.take()?.end(noted) }
}

/// Bytes of a peer that the library keeps beyond the read that returned them, such as the body of a message that is
/// being gathered. They count as memory of the connection until this object is released.
package final class KeptBytes {
    private let share: MemoryShare
    /// The number of bytes: the capacity of their storage.
    package var count: Int { didSet { share.keep(count - oldValue) } }

    /// Returns `nil` if the connection has no share in a budget.
    package init?(_ count: Int, of connection: Connection) {
        guard let share = connection.cold?.memory else { return nil }
        (self.share, self.count) = (share, count)
        share.keep(count)
    }

    deinit { share.keep(-count) }
}

extension Connection {
    /// Unconsumed input, data made from it by a decoder and a filter, and unsent writes.
    var heldMemory: Int {
        guard let cold else { return writer.memory }
        let parts = cold.memory.map { $0.inDecoder + $0.kept } ?? 0
        return cold.input.memory + writer.memory + (cold.filter?.heldMemory ?? 0) + parts
    }

    @inline(never)
    func noteHeldMemory() {
        if let share = cold?.memory { noteHeldMemory(in: share) }
    }

    /// Like `noteHeldMemory`, for a pending read.
    /// - Parameters:
    ///   - count: the bytes that the decoder keeps.
    ///   - missing: the minimum number of bytes that the read waits for.
    @inline(never)
    func noteHeldMemory(inDecoder count: Int, awaiting missing: Int = 1) {
        guard let cold else { return }
        if !cold.input.isEmpty { cold.input.shrink(awaiting: missing) }
        guard let share = cold.memory else { return }
        share.inDecoder = count.asHeldBytes
        noteHeldMemory(in: share)
    }

    /// Like `heldMemory`, without memory that other connections also wait to send.
    fileprivate var memoryOfItsOwn: Int {
        guard let queue = writer.queue, let budget = cold?.memory?.budget else { return heldMemory }
        return heldMemory - queue.sharedMemory + queue.sum { budget.memoryFreed(by: $0) }
    }

    /// Notes the held memory without shared blocks, which the budget counts only once.
    private func noteHeldMemory(in share: MemoryShare) { share.note(heldMemory - (writer.queue?.sharedMemory ?? 0)) }
}

extension Int {
    /// The number of bytes that the program's own decoder or filter reports, clamped so that sums cannot overflow.
    var asHeldBytes: Int { Swift.min(Swift.max(self, 0), 1 << 40) }
}
