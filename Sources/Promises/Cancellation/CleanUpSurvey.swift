import Reactor
import Synchronization

/// How much of what a cancellation is going to climb has to wait for clean-ups. Looks, and changes nothing. Cores of other
/// threads' loops are not looked at.
struct CleanUpSurvey {
    /// How many cores, from the next one upwards, a cancellation would not settle at once.
    var count = 0
    /// The same for the sources of the combinators above, by their addresses: nested ones are not looked at again.
    private var sources: [UInt: Int] = [:]

    /// Nothing waits.
    init() {}

    /// - Parameter sparesWanted: whether the cancellation ends at `first` if a handler waits there.
    init(from first: CoreRef, sparesWanted: Bool) {
        if EventLoop.ofCurrentThread.hasEnded { return }
        let chain = Branch(from: first, sparesWanted: sparesWanted, below: nil, startedAt: nil)
        count = chain.count
        if chain.combinator == nil { return }
        var tree = Tree(chain, from: first)
        repeat { tree.climbCombinators() } while tree.climbShared()
        (count, sources) = tree.counts()
    }

    /// What is above a source of a combinator that the cancellation would come to.
    func ofSource(_ source: PromiseCore) -> CleanUpSurvey? {
        guard let count = sources[source.address] else { return nil }
        var survey = self
        survey.count = count
        return survey
    }

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
        var shared: (core: CoreRef, waiter: PromiseCore)?
        /// The branches below it, and whether they end at the core that it begins with, not at a combinator.
        var below: [Int] = []
        var isShared = false
        var source: UInt?

        /// Climbs as a cancellation would. Every core on the way has one waiter, so promises that wait for each other in a
        /// circle lead back to the start.
        init(from first: CoreRef, sparesWanted: Bool, below waiter: PromiseCore?, startedAt start: CoreRef?) {
            let here = LoopRef.ofThisThread
            var (next, waiter, sparesWanted) = (first, waiter, sparesWanted)
            while true {
                let core = next.object
                let isStart = next == (height == 0 ? start : start ?? first)
                // Any thread may look at those that any thread may settle.
                guard !isStart, core.loop == here || core.role.contains(.externallySettled),
                    core.state.load().isClaimable
                else { break }
                if sparesWanted && core.isWanted(besides: waiter) {
                    shared = waiter.map { (next, $0) }
                    break
                }
                height += 1
                if core.role.contains(.externallySettled) {
                    if core.mayWaitForCleanUps { count = height }
                    break
                }
                let producer = core.settlingCore
                let word = producer.upstream.load()
                if producer.marks.contains(.isEndingCancelled) {
                    countBelowWork = count
                    count = height
                    return
                }
                if word == .none {
                    combinator = producer
                    break
                }
                if producer.isShielding {
                    countBelowWork = count
                    if word.isWaiting { count = height }
                    return
                }
                if producer.mustRun && !word.isTaken { count = height }
                guard word.isWaiting else { break }
                (next, waiter, sparesWanted) = (word.core, producer, true)
            }
            countBelowWork = count
        }
    }

    /// The branches of a cancellation that comes to a combinator.
    private struct Tree {
        private let start: CoreRef
        private var branches: [Branch]
        /// Those that end at a core with several waiters, by its address.
        private var shared: [UInt: [Int]] = [:]
        /// The first branch whose combinator has not been looked at.
        private var next = 0

        init(_ chain: Branch, from start: CoreRef) {
            self.start = start
            branches = [chain]
        }

        private mutating func add(_ branch: Branch) {
            if let core = branch.shared?.core { shared[core.address, default: []].append(branches.count) }
            branches.append(branch)
        }

        /// Adds the sources of the combinators to which branches lead.
        mutating func climbCombinators() {
            while next < branches.count {
                for input in branches[next].combinator?.inputs ?? [] {
                    let word = input.upstream.load()
                    guard word.isWaiting else { continue }
                    var above = Branch(from: word.core, sparesWanted: true, below: input, startedAt: start)
                    above.below = [next]
                    above.source = word.address
                    add(above)
                }
                next += 1
            }
        }

        /// Where all waiters of a core belong to branches, the last of these branches goes on there.
        /// - Returns: whether there was such a core.
        mutating func climbShared() -> Bool {
            let joined = shared.filter { _, ends in
                guard ends.count > 1, let core = branches[ends[0]].shared?.core else { return false }
                let waiters = Set(ends.compactMap { branches[$0].shared?.waiter.address })
                return !core.borrow { $0.isWanted(besides: waiters) }
            }
            for (address, ends) in joined {
                shared[address] = nil
                guard let core = branches[ends[0]].shared?.core else { continue }
                var above = Branch(from: core, sparesWanted: false, below: nil, startedAt: start)
                (above.below, above.isShared) = (ends, true)
                // A clean-up that is at work may wait for this very cancellation, in a circle: it is not waited for.
                above.count = above.countBelowWork
                add(above)
            }
            return !joined.isEmpty
        }

        /// The count of the first branch, and those of the sources of combinators.
        consuming func counts() -> (Int, [UInt: Int]) {
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
    }
}

extension PromiseCore {
    /// Whether this promise of this thread, when the waiter that has withdrawn was its last, does not settle at once.
    var isBehindCleanUps: Bool { CleanUpSurvey(from: rootRef, sparesWanted: true).count > 0 }
}
