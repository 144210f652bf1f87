import CLinux
import Glibc
import Synchronization

/// Loops that share work: each on a thread of its own, which the group has started.
///
/// ```swift
/// let group = try LoopGroup(name: "server")
/// group.next().submit { … }
/// group.stop()
/// group.join()
/// ```
///
/// As a collection it is the loops' remotes, in the order of their numbers. Any thread may use it.
///
/// Its loops go on until `stop()`, or until the last reference to the group goes: a lease is one, and what is served on the
/// group (`Listener.serve(on:)` of `Promises`) has one. A job on a loop of the group that holds the group keeps it for
/// ever. Nobody need `join` it; see `EventLoop.spawn` for what becomes of what is left on a loop that ends.
public final class LoopGroup: Sendable {
    package let members: [Member]
    // Where the next choice begins to look.
    private let cursor = Atomic<UInt>(0)

    /// As many loops as there are cores that the process may use.
    public static var defaultLoops: Int { Int(clinux_usable_cores()) }

    /// Starts the loops, each as `EventLoop.spawn` does. When this returns all of them run.
    /// - Parameters:
    ///   - loops: how many; 1 at least. More than there are cores only share them.
    ///   - name: what their threads are called, followed by a number: "loop-1". Linux shows 15 bytes; the name is cut so that the
    ///     number remains. An empty one is "loop".
    /// - Throws: `SystemError`: `EINVAL` of `pthread_create` for a number below one; what `EventLoop.spawn` throws, and then the
    ///   loops that were started before have ended again.
    public convenience init(loops: Int = LoopGroup.defaultLoops, name: String = "loop") throws(SystemError) {
        try self.init(loops: loops, name: name, syscalls: { Syscalls() })
    }

    /// The same with system calls, and a way of starting threads, that a test has replaced.
    package init(
        loops: Int, name: String, syscalls: @escaping @Sendable () -> Syscalls,
        create: @escaping LibraryThread.Create = LibraryThread.create
    ) throws(SystemError) {
        let name = name.isEmpty ? "loop" : name
        guard loops >= 1 else {
            let detail = "LoopGroup(loops: \(loops)): there must be 1 at least"
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
            for member in members { member.remote.loop.isOver.wait() }
            throw error
        }
        self.members = members
    }

    // Perhaps on a thread of one of them, so it does not wait.
    deinit { stop() }

    /// Ends each loop after its present turn: see `Remote.stop()`. What is served on the group is cut off; to end it in order,
    /// drain its listener before. Again: nothing happens.
    public func stop() {
        for member in members { member.remote.stop() }
    }

    /// Blocks the calling thread until all loops have ended, with all that they held; of the group's own threads none waits for
    /// itself. See `Remote.join()`.
    @available(*, noasync, message: "it blocks its thread")
    public func join() {
        for member in members { member.remote.join() }
    }

    // MARK: Choosing

    /// How work is spread over the loops.
    public enum Balancing: Hashable, Sendable {
        /// One after the other.
        case roundRobin
        /// The loop with the fewest leases, and of several such one after the other. A connection that is served on the group
        /// is a lease.
        case leastConnections
    }

    /// The loops one after the other. Those that have ended are passed over, unless all have.
    public func next() -> EventLoop.Remote { (pick(.roundRobin) ?? members[0]).remote }

    /// A share of a loop's work, which is counted as long as this object lives: for connections, sessions and the like that
    /// are moved to the loops by hand.
    public final class Lease: Sendable {
        private let member: Member
        // A group whose loops have work is not let go.
        private let group: LoopGroup

        /// The loop.
        public var remote: EventLoop.Remote { member.remote }

        fileprivate init(_ member: Member, _ group: LoopGroup) {
            self.member = member
            self.group = group
            member.load.add(1, ordering: .relaxed)
        }

        deinit { member.load.subtract(1, ordering: .relaxed) }
    }

    /// A loop, and one more lease on it until the answer is let go. Loops that have ended are passed over, unless all have.
    public func lease(_ balancing: Balancing = .leastConnections) -> Lease {
        Lease(pick(balancing) ?? members[0], self)
    }

    /// How many leases each loop has, in the order of the collection.
    public var loads: [Int] { members.map { $0.load.load(ordering: .relaxed) } }

    /// `nil` if all have ended.
    package func pick(_ balancing: Balancing) -> Member? {
        let first = Int(cursor.add(1, ordering: .relaxed).oldValue % UInt(members.count))
        var best: (member: Member, load: Int)?
        for offset in members.indices {
            let member = members[(first + offset) % members.count]
            if member.hasEnded { continue }
            if balancing == .roundRobin { return member }
            let load = member.load.load(ordering: .relaxed)
            if best.map({ load < $0.load }) ?? true { best = (member, load) }
        }
        return best?.member
    }

    /// A loop of a group, and how much work it has.
    package final class Member: Sendable {
        package let remote: EventLoop.Remote
        package let index: Int
        package let load = Atomic(0)
        private let isGone = Atomic(false)

        fileprivate init(_ remote: EventLoop.Remote, index: Int) {
            self.remote = remote
            self.index = index
        }

        fileprivate var hasEnded: Bool {
            if isGone.load(ordering: .relaxed) { return true }
            if remote.hasEnded { noteEnd() }
            return isGone.load(ordering: .relaxed)
        }

        /// It has refused a job: nobody is to try again, though it may take a moment until it has ended.
        package func noteEnd() { isGone.store(true, ordering: .relaxed) }
    }
}

extension LoopGroup: RandomAccessCollection {
    /// 0.
    public var startIndex: Int { 0 }
    /// The number of loops.
    public var endIndex: Int { members.count }
    /// The loop of that number, counted from 0: that of 0 is called "loop-1".
    public subscript(index: Int) -> EventLoop.Remote { members[index].remote }
}
