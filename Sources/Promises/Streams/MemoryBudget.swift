import Libc
import Reactor

/// The memory of a listener's or a pool's connections on one loop, and its limit; see `ServeOptions.memoryLimit`.
/// Accessed only on the loop's thread.
///
/// The sum is updated when a connection begins to hold more, and when it goes on waiting. It is exact when it matters:
/// a connection is ended only after all have been examined.
final class MemoryBudget {
    private let limit: Int
    private let loop: EventLoop
    private let didEvict: () -> Void
    private let members: () -> [Member]
    /// The connections' memory, as noted.
    private var held = 0
    private var hasJob = false
    /// The memory that queues share, keyed by its start: the number of queues it waits in, and its size.
    private var shared: [UnsafeRawPointer: (holders: Int, count: Int)] = [:]

    /// A connection, and the work that ends with it, if any.
    typealias Member = (connection: Connection, work: PromiseCore?)

    /// - Parameters:
    ///   - didEvict: called for each connection that is about to be ended.
    ///   - members: returns the connections that share the budget.
    init(
        _ limit: Int, on loop: EventLoop, didEvict: @escaping () -> Void, of members: @escaping () -> [Member]
    ) {
        self.limit = limit
        self.loop = loop
        self.didEvict = didEvict
        self.members = members
    }

    /// Counts a connection until it is closed.
    func begin(for connection: Connection) { connection.ensuredColdState.memory = MemoryShare(self) }

    /// A connection holds `change` bytes more than before.
    func note(_ change: Int) {
        held += change
        // Only growth: a connection that goes with its loop leaves no job behind.
        if change > 0 && held > limit && !hasJob { enforceLater() }
    }

    @inline(never)
    private func enforceLater() {
        hasJob = true
        // Not inside the read or the write of the connection.
        loop.enqueueAtEndOfTurn(ClosureJob { [self] in enforce() })
    }

    /// Counts shared memory that begins to wait in a queue. It counts once, however many queues it is in.
    func hold(_ memory: SharedBytes) {
        guard case (let address?, let count) = memory.extent else { return }
        shared[address, default: (0, count)].holders += 1
        if shared[address]?.holders == 1 { note(count) }
    }

    /// Releases shared memory that has left a queue: on any thread, once the loop has ended.
    func release(_ memory: SharedBytes) {
        guard !loop.hasEnded, let address = memory.extent.address, let entry = shared[address] else { return }
        shared[address] = entry.holders == 1 ? nil : (entry.holders - 1, entry.count)
        if entry.holders == 1 { note(-entry.count) }
    }

    /// A connection that holds `count` bytes is closed: by any thread, once the loop has ended.
    func end(_ count: Int) { if !loop.hasEnded { note(-count) } }

    /// Ends the connections that hold the most, if all together hold too much: until they hold seven eighths of the
    /// limit, so that the next check is not due at once.
    private func enforce() {
        defer { hasJob = false }
        // The turn may have consumed the input.
        if held <= limit { return }
        let members = members()
        for member in members { member.connection.noteHeldMemory() }
        let total = held
        if total <= limit { return }
        for (count, member) in members.map({ ($0.connection.heldMemory, $0) }).sorted(by: { $0.0 > $1.0 }) {
            if held <= limit / 8 * 7 { return }
            // Closed since, by a handler of the previous one.
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
        let isTold = PeerWatching.hasPendingOperation(connection)
        didEvict()
        connection.abort(because: error)
        // It may keep its peer's bytes.
        if !isTold { member.work?.cancel(with: error) }
    }
}

/// The memory that one connection holds for its peer's bytes, and for writes that the kernel has not taken, as a budget
/// counts it. Accessed on the loop's thread.
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

/// Bytes of a peer that a part of the library keeps beyond the read that returned them, such as the body of a message
/// that is being gathered. They count as memory of the connection until this object is released.
package final class KeptBytes {
    private let share: MemoryShare
    /// Their number: by the capacity of their storage.
    package var count: Int { didSet { share.keep(count - oldValue) } }

    /// `nil` if the connection has no share in a budget.
    package init?(_ count: Int, of connection: Connection) {
        guard let share = connection.cold?.memory else { return nil }
        (self.share, self.count) = (share, count)
        share.keep(count)
    }

    deinit { share.keep(-count) }
}

extension Connection {
    /// The memory of unconsumed input, of data that a decoder and a filter have made from it, and of writes that the
    /// kernel has not taken.
    var heldMemory: Int {
        guard let cold else { return writer.memory }
        let parts = cold.memory.map { $0.inDecoder + $0.kept } ?? 0
        return cold.input.memory + writer.memory + (cold.filter?.heldMemory ?? 0) + parts
    }

    /// The memory of the connection may have changed.
    @inline(never)
    func noteHeldMemory() {
        if let share = cold?.memory { noteHeldMemory(in: share) }
    }

    /// As `noteHeldMemory`, for a pending read.
    /// - Parameters:
    ///   - count: the bytes that its decoder keeps.
    ///   - missing: the minimum number of bytes that it waits for.
    @inline(never)
    func noteHeldMemory(inDecoder count: Int, awaiting missing: Int = 1) {
        guard let cold else { return }
        if !cold.input.isEmpty { cold.input.shrink(awaiting: missing) }
        guard let share = cold.memory else { return }
        share.inDecoder = count
        noteHeldMemory(in: share)
    }

    /// The budget counts memory that several connections hold only once.
    private func noteHeldMemory(in share: MemoryShare) { share.note(heldMemory - (writer.queue?.sharedMemory ?? 0)) }
}
