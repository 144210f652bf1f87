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
}

/// A listener's drain, and afterwards its result.
final class ListenerDrain {
    let guarantee: Guarantee<DrainResult>
    private let resolve: (DrainResult) -> Void
    /// How many connections were open at the beginning.
    private let all: Int
    private let counters: DrainCounters
    private var deadline: EventLoop.Timer?
    private var isFinished = false

    init(_ all: Int, _ counters: DrainCounters) {
        self.all = all
        self.counters = counters
        counters.begin()
        (guarantee, resolve) = Guarantee<DrainResult>.pending()
    }

    func start(_ deadline: EventLoop.Timer) {
        // An inline handler of a closed connection may have ended the last one.
        if isFinished { deadline.cancel() } else { self.deadline = deadline }
    }

    /// - Parameter active: how many connections are left, for which the drain does not wait.
    func finish(active: Int) {
        if isFinished { return }
        isFinished = true
        deadline.take()?.cancel()
        resolve(counters.result(all, active: active))
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
    /// How many connections were ended because of `Listener.memoryLimit`.
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
