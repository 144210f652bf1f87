import Reactor
import Synchronization

/// How the connections of a drained listener ended.
public struct DrainResult: Hashable, Sendable {
    /// Connections that the drain has ended because they were idle; see `Listener.drain`.
    public internal(set) var idle = 0
    /// Connections whose handlers finished by themselves, and from which the kernel has taken everything.
    public internal(set) var finished = 0
    /// Connections that were aborted at the deadline, or that ended with their loop before it.
    public internal(set) var aborted = 0

    static func + (one: DrainResult, other: DrainResult) -> DrainResult {
        var sum = one
        sum.idle += other.idle
        sum.finished += other.finished
        sum.aborted += other.aborted
        return sum
    }
}

/// A listener's drain, and afterwards its result.
struct ListenerDrain {
    let guarantee: Guarantee<DrainResult>
    private let resolve: (DrainResult) -> Void
    /// How many connections were open at the beginning.
    private let all: Int
    var deadline: EventLoop.Timer?
    /// Present when the drain has ended.
    private(set) var result: DrainResult?

    init(of all: Int, _ counters: DrainCounters) {
        self.all = all
        counters.begin()
        (guarantee, resolve) = Guarantee<DrainResult>.pending()
    }

    /// - Parameter active: how many connections are left, for which the drain does not wait.
    /// - Returns: what settles `guarantee`; `nil` if the drain has ended before.
    mutating func finish(_ counters: DrainCounters, active: Int) -> (() -> Void)? {
        if self.result != nil { return nil }
        let result = counters.result(all, active: active)
        self.result = result
        return { [resolve, deadline = deadline.take()] in
            deadline?.cancel()
            resolve(result)
        }
    }
}

/// Counts how the connections of a listener end, on all its loops: most of them while it is drained. Any thread.
final class DrainCounters: Sendable {
    private let hasBegun = Atomic(false)
    private let idle = Atomic(0)
    /// How many of the idle and aborted connections are not closed yet.
    private let leaving = Atomic(0)
    /// How many connections have ended with their loop.
    private let lost = Atomic(0)
    /// How many connections were ended because of `ServeOptions.memoryLimit`.
    private let evictedCount = Atomic(0)
    var evicted: Int { evictedCount.load(ordering: .relaxed) }

    func countEvicted() { evictedCount.add(1, ordering: .relaxed) }

    func begin() { hasBegun.store(true, ordering: .relaxed) }

    /// An idle connection is being closed.
    func countIdle() {
        idle.add(1, ordering: .relaxed)
        countLeaving()
    }

    /// A connection is being closed, or aborted.
    func countLeaving() { leaving.add(1, ordering: .relaxed) }

    /// One of these connections is closed.
    func countLeft() { leaving.subtract(1, ordering: .relaxed) }

    /// A connection has ended with its loop.
    func countLost() {
        if hasBegun.load(ordering: .relaxed) { lost.add(1, ordering: .relaxed) }
    }

    /// The result for `all` connections, of which `active` are still open; those of them that are not leaving will be
    /// aborted. A connection that ends on another thread at this moment may be counted either way.
    func result(_ all: Int, active: Int) -> DrainResult {
        var result = DrainResult()
        result.aborted = lost.load(ordering: .relaxed) + max(active - leaving.load(ordering: .relaxed), 0)
        result.idle = idle.load(ordering: .relaxed)
        result.finished = max(all - result.idle - result.aborted, 0)
        return result
    }
}
