import Reactor
import Synchronization

/// The tasks of `Promise { … }` for loops with a virtual clock, which stands still while such a task works. While the task
/// waits for a promise of that very loop, the clock must go on, or neither would. So a waiter looks here whether its task is
/// one of these, and tells the loop.
///
/// Child tasks, and tasks that the body starts, are not in the list: the parent may work while they wait.
enum VirtualTasks {
    /// How many tasks there are. Zero where no clock is virtual: then a wait costs no more than this look.
    private static let count = Atomic(0)
    /// By the hash of the task, which Swift makes of its address with a secret of the process: unique, but for a chance of one in
    /// 2^64. (The task itself may not be kept.) A task is in the list only while it runs, so an address is not used twice.
    private static let homes = LockedValue<[Int: EventLoop.Remote]>([:])

    /// Runs `work` in the current task, which is work for `home`.
    static func run(for home: EventLoop.Remote, _ work: () async -> Void) async {
        let key = currentTask
        homes.withLock { $0[key] = home }
        count.add(1, ordering: .relaxed)
        await work()
        count.subtract(1, ordering: .relaxed)
        homes.withLock { $0[key] = nil }
    }

    /// The loop that counts the current task as its external work, if its clock is virtual, and `promise` belongs to that loop and
    /// has no resolver.
    static func home(waitingFor promise: PromiseCore) -> EventLoop.Remote? {
        // A task sees its own entry.
        guard count.load(ordering: .relaxed) > 0 else { return nil }
        let key = currentTask
        let root = promise.root
        // Another thread may hold the resolver, and be at work.
        guard !(root is ResolverCore) else { return nil }
        guard let home = homes.withLock({ $0[key] }), home.isRemote(ofLoopAt: root.loop) else { return nil }
        return home
    }

    private static var currentTask: Int { withUnsafeCurrentTask { $0?.hashValue ?? 0 } }
}
