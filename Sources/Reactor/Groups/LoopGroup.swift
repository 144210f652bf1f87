import CLinux
import ReactorLibc
import Synchronization

/// A group of loops that share work, each on a thread that the group starts.
///
/// ```swift
/// let group = try LoopGroup(name: "server")
/// group.next().submit { … }
/// group.stop()
/// group.join()
/// ```
///
/// As a collection, the group contains the remotes of its loops. Any thread may use it.
///
/// The loops run until `stop()` or the release of the last reference to the group. Leases hold references to the group,
/// and so do listeners that serve on it. A job on one of its loops that retains the group keeps it alive forever.
/// Joining is optional. See `EventLoop.spawn` for work left on an ending loop.
public final class LoopGroup: Sendable {
    package let members: [Member]
    // The start for the next choice.
    private let cursor = Atomic<UInt>(0)

    package static var defaultLoops: Int { Int(clinux_usable_cores()) }

    /// Starts the loops like `EventLoop.spawn`. All are running when this returns.
    /// - Parameters:
    ///   - loops: the number of loops, at least 1. The default is the number of usable cores; more loops only share the
    ///     cores.
    ///   - name: the name of the threads, followed by a number: "loop-1". Linux shows 15 bytes; a long name is cut
    ///     before the number. An empty name becomes "loop".
    /// - Throws: `SystemError`: `EINVAL` from `pthread_create` for fewer than one loop, or an error from
    ///   `EventLoop.spawn`, after the loops that had started have ended.
    public convenience init(loops: Int? = nil, name: String = "loop") throws(SystemError) {
        try EventLoop.refuseInSimulation()
        try self.init(loops: loops ?? Self.defaultLoops, name: name, syscalls: { Syscalls() })
    }

    package init(
        loops: Int, name: String, syscalls: @escaping @Sendable () -> Syscalls,
        create: @escaping LibraryThread.Create = LibraryThread.create
    ) throws(SystemError) {
        let name = name.isEmpty ? "loop" : name
        guard loops >= 1 else {
            let detail = "LoopGroup(loops: \(loops)): there must be at least 1"
            throw SystemError(.threadCreate, EINVAL, detail: detail)
        }
        var members: [Member] = []
        do throws(SystemError) {
            for number in 1...loops {
                let name = LibraryThread.name(name, number: number)
                let remote = try EventLoop.spawn(name: name, syscalls: syscalls, create: create)
                members.append(Member(remote, index: number - 1))
            }
        } catch {
            for member in members { member.remote.stop() }
            for member in members { member.remote.loop.shared.life.isOver.wait() }
            throw error
        }
        self.members = members
    }

    // Does not wait, since it may run on one of the group's threads.
    deinit { stop() }

    /// Ends each loop after its current turn; see `LoopRemote.stop()`. Cuts off connections served on the group; to end
    /// them gracefully, drain their listener first. Further calls do nothing.
    public func stop() {
        for member in members { member.remote.stop() }
    }

    /// Blocks the calling thread until all loops have ended and released everything. On one of the group's threads,
    /// does not wait for that thread's loop. See `LoopRemote.join()`.
    @available(*, noasync, message: "it blocks its thread")
    public func join() {
        for member in members { member.remote.join() }
    }

    // MARK: Choosing

    /// The way to distribute work over the loops.
    public enum Balancing: Hashable, Sendable {
        /// Each loop in turn.
        case roundRobin
        /// The loop with the fewest leases; equals take turns. Each connection served on the group is a lease.
        case leastConnections
    }

    /// Chooses each loop in turn. Skips ended loops, unless all have ended.
    public func next() -> LoopRemote { (pick(.roundRobin) ?? members[0]).remote }

    /// A share of a loop's work, counted until it is cancelled or released. For connections, sessions and other work
    /// that the program assigns to loops. See `LoopHandle`.
    public final class Lease: LoopHandle, Sendable {
        private let member: Member
        // Keeps the group alive while its loops have work.
        private let group: LoopGroup
        private let isCancelled = Atomic(false)

        /// The loop that counts the lease.
        public var remote: LoopRemote { member.remote }

        fileprivate init(_ member: Member, _ group: LoopGroup) {
            self.member = member
            self.group = group
            member.load.add(1, ordering: .relaxed)
        }

        deinit { cancel() }

        /// Stops counting the lease. The group stays retained until this object is released. Any thread.
        /// - Returns: true unless the lease was already cancelled.
        @discardableResult
        public func cancel() -> Bool {
            if isCancelled.exchange(true, ordering: .relaxed) { return false }
            member.load.subtract(1, ordering: .relaxed)
            return true
        }

        /// True until the lease is cancelled or its loop ends. Any thread.
        public var isActive: Bool { !isCancelled.load(ordering: .relaxed) && !member.remote.hasEnded }
    }

    /// Chooses a loop. Skips ended loops, unless all have ended.
    /// - Returns: a lease on the loop, counted until cancelled or released.
    public func lease(_ balancing: Balancing = .leastConnections) -> Lease {
        Lease(pick(balancing) ?? members[0], self)
    }

    /// In the collection's order.
    package var loads: [Int] { members.map { $0.load.load(ordering: .relaxed) } }

    /// Returns a loop; `nil` if all have ended.
    package func pick(_ balancing: Balancing) -> Member? {
        let first = Int(cursor.add(1, ordering: .relaxed).oldValue % UInt(members.count))
        var best: (member: Member, load: Int)?
        for offset in members.indices {
            let member = members[(first + offset) % members.count]
            // A loop that refuses jobs must not be chosen again, even if it takes a moment to end.
            if member.remote.loop.hasEnded { continue }
            if balancing == .roundRobin { return member }
            let load = member.load.load(ordering: .relaxed)
            if best.map({ load < $0.load }) ?? true { best = (member, load) }
        }
        return best?.member
    }

    package final class Member: Sendable {
        package let remote: LoopRemote
        package let index: Int
        package let load = Atomic(0)

        fileprivate init(_ remote: LoopRemote, index: Int) {
            self.remote = remote
            self.index = index
        }
    }
}

extension LoopGroup: RandomAccessCollection {
    /// Always 0.
    public var startIndex: Int { 0 }
    /// The number of loops.
    public var endIndex: Int { members.count }
    /// The remote of one loop.
    /// - Parameter index: the number of the loop; the loop at 0 is called "loop-1".
    public subscript(index: Int) -> LoopRemote { members[index].remote }
}
