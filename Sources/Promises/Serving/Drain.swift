import Reactor
import Synchronization

/// How the connections of a drained listener ended.
public struct DrainResult: Hashable, Sendable {
    /// Connections that the drain has ended, because they were idle or between two frames; see `Listener.drain`.
    public internal(set) var idle = 0
    /// Connections whose handlers finished by themselves, and whose bytes the kernel has taken.
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

/// The drain of one listener: its state, its deadline and its result. The `ConnectionTracker` of each loop ends the connections.
///
/// ```
///   [not begun] -- begin --> [draining] -- end --> [ended]
/// ```
///
/// The drain ends when the last connection has ended, at the deadline, by `abortDrain`, or with the loop. Accessed on
/// the listener's thread.
final class Drain {
    /// The number of connections that were open at the beginning.
    private var open: Int?
    private(set) var result: DrainResult?
    private var timer: EventLoop.Timer?
    private lazy var pending = Guarantee<DrainResult>.pending()
    let counts = ConnectionCounts()

    var hasBegun: Bool { open != nil }
    /// Present once it has begun.
    var guarantee: Guarantee<DrainResult> { pending.guarantee }

    /// - Returns: false if it had begun before.
    func begin(open: Int) -> Bool {
        if hasBegun { return false }
        self.open = open
        counts.beginDrain()
        return true
    }

    /// Calls `end` at the deadline, unless the drain ends before.
    func schedule(after time: Duration, on loop: EventLoop, _ end: @escaping () -> Void) {
        if result == nil { timer = loop.schedule(after: time, end) }
    }

    /// Settles the guarantee, unless the drain has not begun or has ended before.
    /// - Parameter open: the number of remaining connections, for which the drain does not wait.
    func end(open: Int) {
        guard let all = self.open, result == nil else { return }
        let result = counts.result(all, open: open)
        self.result = result
        timer.take()?.cancel()
        pending.resolve(result)
    }
}

/// Counts how the connections of a listener end, on all its loops, mostly during a drain. Any thread.
final class ConnectionCounts: Sendable {
    private let isDraining = Atomic(false)
    private let idle = Atomic(0)
    /// The number of idle, delivered and aborted connections that are not closed yet.
    private let leaving = Atomic(0)
    /// The number of connections that ended with their loop.
    private let lost = Atomic(0)
    /// The number of connections ended because of `ServeOptions.memoryLimit`.
    private let evictedCount = Atomic(0)
    var evicted: Int { evictedCount.load(ordering: .relaxed) }

    func countEvicted() { evictedCount.add(1, ordering: .relaxed) }

    func beginDrain() { isDraining.store(true, ordering: .relaxed) }

    /// An idle connection is being closed.
    func countIdle() {
        idle.add(1, ordering: .relaxed)
        countLeaving()
    }

    /// A connection is idle, has delivered its bytes, or is aborted.
    func countLeaving() { leaving.add(1, ordering: .relaxed) }

    /// One of these connections is closed.
    func countLeft() { leaving.subtract(1, ordering: .relaxed) }

    /// A connection has ended with its loop.
    func countLost() {
        if isDraining.load(ordering: .relaxed) { lost.add(1, ordering: .relaxed) }
    }

    /// The result for `all` connections, of which `open` have not ended; those of them that are not leaving will be
    /// aborted. A connection that ends on another thread meanwhile may be counted either way.
    func result(_ all: Int, open: Int) -> DrainResult {
        var result = DrainResult()
        result.aborted = lost.load(ordering: .relaxed) + max(open - leaving.load(ordering: .relaxed), 0)
        result.idle = idle.load(ordering: .relaxed)
        result.finished = max(all - result.idle - result.aborted, 0)
        return result
    }
}
