import Reactor
import Synchronization

// The order of a cancellation: that of a rejection. A core that waits for a clean-up, or for a core that waits for one,
// does not settle when it is cancelled. It loses its operation, and is rejected when the promise above it has been.

/// How far a cancellation that climbs has to wait for clean-ups.
struct CancellationClimb {
    /// Where the core that is being cancelled is.
    enum Place {
        /// No clean-up is above it: it settles at once.
        case free
        /// It is the topmost core that does not settle at once.
        case last
        /// The promise that it waits for does not settle at once.
        case behind
    }

    var place = Place.free
    /// How many cores, from the next one upwards, do not settle at once.
    private var left = 0
    /// The same for the sources of the combinators above, by their addresses: nested ones are not looked at again.
    private var sources: [UInt: Int] = [:]
    /// The topmost clean-up.
    private var run: CancelledRun?

    /// Without a clean-up.
    init() {}

    init(from core: PromiseCore, _ request: PromiseCore.Request) {
        (left, sources) = PromiseCore.countBehindCleanUps(core.unmanagedRoot, isUnwanted: request.isUnwanted)
    }

    /// For a source of a combinator that this cancellation has come to.
    func branch(to source: PromiseCore) -> CancellationClimb {
        guard let count = sources[source.address] else { return CancellationClimb(from: source, .unobserved) }
        var climb = CancellationClimb()
        (climb.left, climb.sources) = (count, sources)
        return climb
    }

    /// For the source of a core that cannot be looked through: one that another thread may settle.
    mutating func restart(from source: PromiseCore) {
        (left, sources) = PromiseCore.countBehindCleanUps(source.unmanagedRoot, isUnwanted: true)
    }

    mutating func runLast(_ cleanUp: CancelledRun) {
        // A second one, if code that ran on the way has changed the chain.
        end()
        run = cleanUp
    }

    mutating func end() {
        if let run = run.take() { EventLoop.ofCurrentThread.enqueue(run) }
    }

    /// Goes to the next core.
    mutating func rise() {
        place = left == 0 ? .free : left == 1 ? .last : .behind
        left = max(left - 1, 0)
    }
}

extension PromiseCore {
    /// Whether this promise of this thread, when the waiter that has withdrawn was its last, does not settle at once.
    var isBehindCleanUps: Bool { Self.countBehindCleanUps(unmanagedRoot, isUnwanted: true).0 > 0 }

    /// A part of what a cancellation would climb: up to a combinator, or to a core that several branches lead to.
    private struct Branch {
        /// The number of its cores up to the topmost one that does not settle at once, and of all.
        var count = 0
        var height = 0
        /// `count`, without a clean-up that is at work at its top.
        var countBelowWork = 0
        /// At its top, one of these or neither.
        var combinator: PromiseCore?
        /// A core that further handlers wait for, and the waiter that belongs to the branch.
        var shared: (core: Unmanaged<PromiseCore>, waiter: PromiseCore)?
        /// The branches below it, and whether they end at the core that it begins with, not at a combinator.
        var below: [Int] = []
        var isShared = false
        var source: UInt?
    }

    /// The number of cores, from `first` upwards, that a cancellation would not settle at once; and the same for the sources
    /// of combinators. Cores of other threads' loops are not looked at.
    fileprivate static func countBehindCleanUps(
        _ first: Unmanaged<PromiseCore>, isUnwanted: Bool
    ) -> (Int, [UInt: Int]) {
        if EventLoop.ofCurrentThread.hasEnded { return (0, [:]) }
        let chain = measure(first, isUnwanted: isUnwanted, below: nil, startedAt: nil)
        if chain.combinator == nil { return (chain.count, [:]) }
        var branches = [chain]
        var shared: [UInt: [Int]] = [:]
        var index = 0
        while true {
            while index < branches.count {
                for input in branches[index].combinator?.inputs ?? [] {
                    let word = input.upstream.load(ordering: .acquiring)
                    guard word & Upstream.mark == Upstream.waiting && !input.cameByLink else { continue }
                    var above = measure(
                        .passUnretained(core(word)), isUnwanted: true, below: input, startedAt: first)
                    above.below = [index]
                    above.source = word & State.pointerMask
                    if let core = above.shared?.core {
                        shared[UInt(bitPattern: core.toOpaque()), default: []].append(branches.count)
                    }
                    branches.append(above)
                }
                index += 1
            }
            // Where all waiters of a core belong to branches, the last of these branches goes on there.
            let joined = shared.filter { _, ends in
                guard ends.count > 1, let core = branches[ends[0]].shared?.core else { return false }
                let waiters = Set(ends.compactMap { branches[$0].shared?.waiter.address })
                return !core._withUnsafeGuaranteedRef { $0.isWanted(besides: waiters) }
            }
            if joined.isEmpty { break }
            for (address, ends) in joined {
                shared[address] = nil
                guard let core = branches[ends[0]].shared?.core else { continue }
                var above = measure(core, isUnwanted: false, below: nil, startedAt: first)
                (above.below, above.isShared) = (ends, true)
                // A clean-up that is at work may wait for this very cancellation, in a circle: it is not waited for.
                above.count = above.countBelowWork
                if let core = above.shared?.core {
                    shared[UInt(bitPattern: core.toOpaque()), default: []].append(branches.count)
                }
                branches.append(above)
            }
        }
        var counts: [UInt: Int] = [:]
        for index in branches.indices.reversed() {
            let branch = branches[index]
            if let source = branch.source { counts[source] = branch.count }
            guard branch.count > 0 else { continue }
            for end in branch.below {
                branches[end].count = branches[end].height + (branch.isShared ? branch.count : 0)
            }
        }
        return (branches[0].count, counts)
    }

    /// Climbs as a cancellation would, and changes nothing. Every core on the way has one waiter, so promises that wait for
    /// each other in a circle lead back to the start.
    private static func measure(
        _ first: Unmanaged<PromiseCore>, isUnwanted: Bool, below waiter: PromiseCore?,
        startedAt start: Unmanaged<PromiseCore>?
    ) -> Branch {
        let here = EventLoop.addressOfThisThread
        var (count, height) = (0, 0)
        var (next, waiter, isUnwanted) = (first, waiter, isUnwanted)
        while true {
            let core = next.takeUnretainedValue()
            let isStart = next.toOpaque() == (height == 0 ? start : start ?? first)?.toOpaque()
            guard !isStart, core.loop == here,
                core.state.load(ordering: .acquiring) & (State.kindMask | State.isClaimed) == State.pending
            else { return Branch(count: count, height: height, countBelowWork: count) }
            if isUnwanted && core.isWanted(besides: waiter) {
                return Branch(
                    count: count, height: height, countBelowWork: count, shared: waiter.map { (next, $0) })
            }
            height += 1
            if core.role.contains(.externallySettled) {
                let last = core.mayWaitForCleanUps ? height : count
                return Branch(count: last, height: height, countBelowWork: last)
            }
            let ownWord = core.upstream.load(ordering: .acquiring)
            let producer = ownWord & Upstream.mark == Upstream.adopted ? Self.core(ownWord) : core
            let word = producer.upstream.load(ordering: .acquiring)
            if producer.isEndingCancelled { return Branch(count: height, height: height, countBelowWork: count) }
            if word == 0 {
                return Branch(count: count, height: height, countBelowWork: count, combinator: producer)
            }
            let isWaiting = word & Upstream.mark == Upstream.waiting
            if producer.role.contains(.shielding) && !producer.isAdopting {
                return Branch(count: isWaiting ? height : count, height: height, countBelowWork: count)
            }
            let isCleanUp = producer.role.contains(.runsWhenCancelled) && !producer.isAdopting
            if isCleanUp && word & Upstream.hasNoOutcome == 0 { count = height }
            guard isWaiting && !producer.cameByLink else {
                return Branch(count: count, height: height, countBelowWork: count)
            }
            (next, waiter, isUnwanted) = (.passUnretained(Self.core(word)), producer, true)
        }
    }

    /// Makes this core, whose operation has been dropped, reject when it runs.
    func rejectWhenRun(with error: (any Error)?) {
        isEndingCancelled = true
        store(
            AdoptingWaiter { core, _ in
                Self.release(upstream: core.upstream.exchange(Upstream.taken, ordering: .relaxed))
                core.finish(throwing: error ?? Self.cancellationError)
            })
        isAdopting = true
    }
}

/// Continues a cancellation on the thread of a core that does not settle at once: as a job, or as a waiter of the promise
/// that settles before it. As a waiter it does not listen: its promise has been cancelled.
// @unchecked Sendable: as PromiseCore.
class CancelledRun: PromiseCore, @unchecked Sendable {
    private let core: PromiseCore
    private let reason: (any Error)?

    /// - Parameter loop: where it runs; `nil` for inline.
    init(_ core: PromiseCore, _ error: (any Error)?, on loop: UnsafeMutableRawPointer? = EventLoop.addressOfThisThread)
    {
        self.core = core
        reason = error
        super.init(state: State.pending, loop: loop, role: .notListening) { _, _ in }
    }

    final func wait(for source: PromiseCore) {
        source.attach(self)
        // Its core is counted.
        waitsNoMore()
    }

    // Reported as the handler that the core is. The core itself is still in the list of its source, or was.
    override var isCountedAsWaiting: Bool { core.countsAsWaiting }

    override func runAndRelease() {
        releaseSource()
        resume()
        Unmanaged.passUnretained(self).release()
    }

    override func discardAndRelease() {
        releaseSource()
        giveUp()
        Unmanaged.passUnretained(self).release()
    }

    /// Runs the core's operation with the cancellation as its source's outcome.
    fileprivate func resume() {
        core.upstream.store(PromiseCore.cancellation(reason), ordering: .relaxed)
        core.retain()
        core.runAndRelease()
    }

    fileprivate func giveUp() {
        core.dropWhatWaits()
        core.producerDidEnd(.loopEnded)
        core.waitsNoMore()
    }

    private func releaseSource() {
        leaveLoop()
        let word = upstream.exchange(Upstream.taken, ordering: .acquiring)
        if word & State.pointerMask != 0 { PromiseCore.release(upstream: word) }
    }
}

/// Calls a closure once promises that end later have settled, or never will.
// @unchecked Sendable: as PromiseCore.
final class AfterCleanUps: CancelledRun, @unchecked Sendable {
    private let body: () -> Void

    /// - Parameter loop: where `body` runs; `nil` for the thread that settles the source.
    init(_ source: PromiseCore, on loop: UnsafeMutableRawPointer?, _ body: @escaping () -> Void) {
        self.body = body
        super.init(source, nil, on: loop)
        wait(for: source)
    }

    override var isCountedAsWaiting: Bool { false }
    override var isReportedUndelivered: Bool { false }
    fileprivate override func resume() { body() }
    fileprivate override func giveUp() { body() }
}
