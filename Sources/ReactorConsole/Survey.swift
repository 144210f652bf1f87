import Promises
import Reactor
import ReactorIO
import Synchronization

/// A survey of everything on a loop, in jobs of a millisecond, so that the loop keeps working.
// @unchecked Sendable: the flag is atomic, and only the loop's thread accesses the rest until it is handed over.
final class Survey: @unchecked Sendable {
    struct Findings: Sendable {
        let moment: Int64
        let facts: [InspectedFacts]
        let connections: [ConnectionFacts]
        let metrics: LoopMetrics
        let promises: PromiseFindings
        /// The survey's nanoseconds on the loop, and its longest piece.
        var cost: Int64 = 0
        var longestPiece: Int64 = 0
    }

    struct PromiseFindings: Sendable {
        let groups: [PromiseGroup]
        let pending: Int
        let ungrouped: Int
        /// The share of the promise table that was examined.
        let share: Double
    }

    /// A piece's nanoseconds. Even with its last step, no piece takes twice as long.
    private static var piece: Int64 { 1_000_000 }
    /// The time for promises, in nanoseconds. The rest are left out.
    private static var mostForPromises: Int64 { 100_000_000 }

    private let isCancelled = Atomic(false)
    private let done: @Sendable (Findings?) -> Void
    private var isFinished = false
    private var connections: ConnectionWalk?
    private var promises: PromiseWalk?
    private var facts: [InspectedFacts] = []
    private var cost: Int64 = 0
    private var costBefore: Int64 = 0
    private var longestPiece: Int64 = 0

    /// - Parameter done: called once, on any thread; with `nil` if the survey was cancelled or the loop has ended.
    init(done: @escaping @Sendable (Findings?) -> Void) {
        self.done = done
    }

    deinit { if !isFinished { done(nil) } }

    /// Callable on any thread.
    func begin(on remote: LoopRemote) { remote.run { self.work(on: EventLoop.ofCurrentThread) } }

    /// Callable on any thread.
    func cancel() { isCancelled.store(true, ordering: .relaxed) }

    private func work(on loop: EventLoop) {
        loop.disregardHandler()
        if isCancelled.load(ordering: .relaxed) { return }
        let began = LoopClock.monotonic.now.nanoseconds
        var time: Int64 = 0
        var findings: Findings?
        while findings == nil, time < Self.piece {
            if !step(on: loop) { findings = take(from: loop) }
            time = LoopClock.monotonic.now.nanoseconds - began
        }
        cost += time
        longestPiece = max(longestPiece, time)
        // Continues through the mailbox, so that the loop takes a turn in between.
        guard var findings else { return begin(on: loop.remote) }
        (findings.cost, findings.longestPiece) = (cost, longestPiece)
        isFinished = true
        done(findings)
    }

    /// - Returns: false at the end.
    private func step(on loop: EventLoop) -> Bool {
        guard let connections else {
            facts = InspectedObjects.facts(ofLoop: loop.serial)
            self.connections = ConnectionWalk(on: loop)
            return true
        }
        guard let promises else {
            if connections.advance(atMost: 16) { return true }
            promises = PromiseWalk(on: loop, input: connections.reader)
            costBefore = cost
            return true
        }
        return cost - costBefore < Self.mostForPromises && promises.advance()
    }

    private func take(from loop: EventLoop) -> Findings {
        let promises = promises.take()!
        return Findings(
            moment: LoopClock.monotonic.now.nanoseconds, facts: facts, connections: connections.take()!.facts,
            metrics: loop.metrics(countingJobs: LoopBeat.mostJobs),
            promises: PromiseFindings(
                groups: promises.groups, pending: promises.pending, ungrouped: promises.ungrouped,
                share: Double(promises.part) / Double(PromiseWalk.partCount)))
    }
}
