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
/// As a collection, a group contains the remotes of its loops, in the order of their numbers. Any thread may use it.
///
/// The loops run until `stop()`, or until the last reference to the group is released. A lease is such a reference, and
/// a listener that serves on the group holds one. A job on one of its loops that retains the group keeps it alive
/// forever. Joining the group is optional. See `EventLoop.spawn` for work that is left on a loop when it ends.
public final class LoopGroup: Sendable {
    package let members: [Member]
    // Where the next choice starts searching.
    private let cursor = Atomic<UInt>(0)

    /// The number of cores that the process may use.
    package static var defaultLoops: Int { Int(clinux_usable_cores()) }

    /// Starts the loops, each as `EventLoop.spawn` does. When this returns, all of them run.
    /// - Parameters:
    ///   - loops: the number of loops, at least 1; by default the number of cores that the process may use. More loops
    ///     only share the cores.
    ///   - name: the name of the threads, to which a number is added: "loop-1". Linux shows 15 bytes; the name is cut
    ///     so that the number remains. An empty name is replaced by "loop".
    /// - Throws: `SystemError`: `EINVAL` of `pthread_create` for a number below one; otherwise an error of
    ///   `EventLoop.spawn`, and the loops that were started before have ended again.
    public convenience init(loops: Int? = nil, name: String = "loop") throws(SystemError) {
        try EventLoop.refuseInSimulation()
        try self.init(loops: loops ?? Self.defaultLoops, name: name, syscalls: { Syscalls() })
    }

    /// As the public initializer, with system calls and a thread starter that a test has replaced.
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

    // This may run on a thread of one of the loops, so it does not wait.
    deinit { stop() }

    /// Ends each loop after its current turn; see `LoopRemote.stop()`. Connections that are served on the group are cut
    /// off. To end them in an orderly way, drain their listener first. Further calls do nothing.
    public func stop() {
        for member in members { member.remote.stop() }
    }

    /// Blocks the calling thread until all loops have ended and released everything they held. A thread of the group
    /// does not wait for its own loop. See `LoopRemote.join()`.
    @available(*, noasync, message: "it blocks its thread")
    public func join() {
        for member in members { member.remote.join() }
    }

    // MARK: Choosing

    /// How work is spread over the loops.
    public enum Balancing: Hashable, Sendable {
        /// Each loop in turn.
        case roundRobin
        /// The loop with the fewest leases; among equals, each in turn. A connection that is served on the group is a
        /// lease.
        case leastConnections
    }

    /// Chooses each loop in turn. Loops that have ended are skipped, unless all have ended.
    public func next() -> LoopRemote { (pick(.roundRobin) ?? members[0]).remote }

    /// A share of a loop's work, which counts until it is cancelled or released: for connections, sessions and other
    /// work that the program itself assigns to loops. See `LoopHandle`.
    public final class Lease: LoopHandle, Sendable {
        private let member: Member
        // Keeps the group alive as long as its loops have work.
        private let group: LoopGroup
        private let isCancelled = Atomic(false)

        /// The loop on which the lease counts.
        public var remote: LoopRemote { member.remote }

        fileprivate init(_ member: Member, _ group: LoopGroup) {
            self.member = member
            self.group = group
            member.load.add(1, ordering: .relaxed)
        }

        deinit { cancel() }

        /// Ends the lease: it no longer counts. The group is retained until this object is released. Any thread.
        /// - Returns: whether the lease was not cancelled before.
        @discardableResult
        public func cancel() -> Bool {
            if isCancelled.exchange(true, ordering: .relaxed) { return false }
            member.load.subtract(1, ordering: .relaxed)
            return true
        }

        /// `true` until the lease is cancelled or its loop ends. Any thread.
        public var isActive: Bool { !isCancelled.load(ordering: .relaxed) && !member.remote.hasEnded }
    }

    /// Chooses a loop. Loops that have ended are skipped, unless all have ended.
    /// - Returns: a lease on the loop, which counts until it is cancelled or released.
    public func lease(_ balancing: Balancing = .leastConnections) -> Lease {
        Lease(pick(balancing) ?? members[0], self)
    }

    /// The number of leases of each loop, in the order of the collection.
    package var loads: [Int] { members.map { $0.load.load(ordering: .relaxed) } }

    /// Returns `nil` if all loops have ended.
    package func pick(_ balancing: Balancing) -> Member? {
        let first = Int(cursor.add(1, ordering: .relaxed).oldValue % UInt(members.count))
        var best: (member: Member, load: Int)?
        for offset in members.indices {
            let member = members[(first + offset) % members.count]
            // One that refuses jobs must not be tried again, although its end may take a moment.
            if member.remote.loop.hasEnded { continue }
            if balancing == .roundRobin { return member }
            let load = member.load.load(ordering: .relaxed)
            if best.map({ load < $0.load }) ?? true { best = (member, load) }
        }
        return best?.member
    }

    /// A loop of a group, and its number of leases.
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
    /// The index of the first loop: 0.
    public var startIndex: Int { 0 }
    /// The number of loops.
    public var endIndex: Int { members.count }
    /// The remote of one loop.
    /// - Parameter index: the number of the loop, from 0; the loop at 0 is called "loop-1".
    public subscript(index: Int) -> LoopRemote { members[index].remote }
}
