import Reactor
import Synchronization

/// The tasks of `Promise { … }` whose loops have a virtual clock. The clock stands still while a task works, but must
/// advance while the task waits for a promise on the same loop. So a waiter checks here whether its task is listed, and
/// notifies the loop.
///
/// Child tasks, and tasks that the body starts, are not listed: their parent may work while they wait.
enum VirtualTasks {
    /// The number of tasks. Zero without a virtual clock, so a wait then costs only this check.
    private static let count = Atomic(0)
    /// The loops by the hashes of their tasks, which must not be retained. Swift hashes the task's address with a
    /// secret of the process, so two tasks collide with probability 2^-64. A task is listed only while it runs, so no
    /// two listed tasks have the same address.
    private static let homes = LockedValue<[Int: LoopRemote]>.ofProcess([:])

    static func run(for home: LoopRemote, _ work: () async -> Void) async {
        let key = currentTask
        homes.withLock { $0[key] = home }
        count.add(1, ordering: .relaxed)
        await work()
        count.subtract(1, ordering: .relaxed)
        homes.withLock { $0[key] = nil }
    }

    /// Returns the loop that counts the current task as external work; `nil` if the loop's clock is not virtual, or if
    /// `promise` belongs to another loop or has a resolver.
    static func home(waitingFor promise: PromiseCore) -> LoopRemote? {
        guard count.load(ordering: .relaxed) > 0 else { return nil }
        let key = currentTask
        // Another thread may hold the resolver, and be about to use it.
        guard !(promise is ResolverCore) else { return nil }
        guard let home = homes.withLock({ $0[key] }), home.isRemote(ofLoopAt: promise.loop?.pointer) else { return nil }
        return home
    }

    private static var currentTask: Int { withUnsafeCurrentTask { $0?.hashValue ?? 0 } }
}
