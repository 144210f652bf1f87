import Synchronization

/// The counts of a drained listener's connections, by how they ended.
public struct DrainResult: Hashable, Sendable {
    /// Connections that the drain ended while idle or between two frames; see `Listener.drain`.
    public internal(set) var idle = 0
    /// Connections whose handlers finished by themselves, and whose bytes the kernel accepted.
    public internal(set) var finished = 0
    /// Connections aborted at the deadline, or ended earlier because their loop ended.
    public internal(set) var aborted = 0

    static func + (one: DrainResult, other: DrainResult) -> DrainResult {
        var sum = one
        sum.idle += other.idle
        sum.finished += other.finished
        sum.aborted += other.aborted
        return sum
    }
}

/// The counts of a listener's open and ended connections on all its loops. Any thread may use them.
final class ConnectionCounts: Sendable {
    /// The open connections and the listener's closed bit. They share one word, so that a connection's end and the
    /// listener's close cannot miss each other, and exactly one caller observes each change.
    private let word = Atomic(0)
    private let isDraining = Atomic(false)
    private let idle = Atomic(0)
    /// The number of idle, delivered and aborted connections that are still open.
    private let leaving = Atomic(0)
    private let lost = Atomic(0)
    private let evictedCount = Atomic(0)
    private let refusedCount = Atomic(0)

    // The fields of `word`: one bit for a closed listener, then the active and the lingering connections. Each count
    // stays below the number of descriptors, so no field overflows.
    private static let closed = 1
    private static let oneActive = 2
    private static let oneLingering = 1 << 32

    private static func active(in word: Int) -> Int { word % oneLingering / oneActive }

    /// The connections whose handlers have not finished.
    var active: Int { Self.active(in: word.load(ordering: .acquiring)) }
    /// The open connections whose handlers have finished.
    var lingering: Int { word.load(ordering: .acquiring) / Self.oneLingering }
    private var open: Int {
        let word = word.load(ordering: .acquiring)
        return Self.active(in: word) + word / Self.oneLingering
    }
    var isEmpty: Bool { open == 0 }
    var evicted: Int { evictedCount.load(ordering: .relaxed) }
    var refused: Int { refusedCount.load(ordering: .relaxed) }

    // MARK: Open connections

    func countActive() { word.add(Self.oneActive, ordering: .relaxed) }

    /// - Returns: true if the listener was at its limit and must be notified.
    func countLingering(limit: Int) -> Bool {
        let left = word.add(Self.oneLingering - Self.oneActive, ordering: .acquiringAndReleasing).newValue
        return Self.active(in: left) == limit - 1
    }

    /// - Returns: true if the listener must be notified: it was at its limit, or is closed and this was the last
    ///   connection.
    func countEnd(wasLingering: Bool, limit: Int) -> Bool {
        let change = wasLingering ? Self.oneLingering : Self.oneActive
        let left = word.subtract(change, ordering: .acquiringAndReleasing).newValue
        return left == Self.closed || !wasLingering && Self.active(in: left) == limit - 1
    }

    /// Makes the last connection's end notify the listener.
    func noteClosed() { word.bitwiseOr(Self.closed, ordering: .acquiringAndReleasing) }

    func countEvicted() { evictedCount.add(1, ordering: .relaxed) }

    func countRefused() { refusedCount.add(1, ordering: .relaxed) }

    // MARK: A drain

    func beginDrain() -> Int {
        isDraining.store(true, ordering: .relaxed)
        return open
    }

    func countIdle() {
        idle.add(1, ordering: .relaxed)
        countLeaving()
    }

    func countLeaving() { leaving.add(1, ordering: .relaxed) }

    func countLeft() { leaving.subtract(1, ordering: .relaxed) }

    func countLost() {
        if isDraining.load(ordering: .relaxed) { lost.add(1, ordering: .relaxed) }
    }

    /// Returns the result for the `all` connections that were open when the drain began. Open ones that are not leaving
    /// will be aborted. One that ends on another thread meanwhile may be counted either way.
    func result(_ all: Int) -> DrainResult {
        var result = DrainResult()
        result.aborted = lost.load(ordering: .relaxed) + max(open - leaving.load(ordering: .relaxed), 0)
        result.idle = idle.load(ordering: .relaxed)
        result.finished = max(all - result.idle - result.aborted, 0)
        return result
    }
}
