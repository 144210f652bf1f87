import Reactor
import Synchronization

// The first pass of a cancellation.

extension Cancellation {
    /// Promises that wait for one another: up to a combinator, or to a promise that several rows lead to.
    struct Row {
        /// The lowest promise.
        let first: PromiseCore
        /// The number of promises.
        private(set) var height = 0
        /// The number of promises, from the lowest one upwards, that do not settle at once.
        fileprivate(set) var later = 0
        /// The same if clean-ups in progress above are not waited for; see `doesNotWaitForWork`.
        private var laterBelowWork = 0
        /// Whether the source of the topmost promise does not settle at once.
        fileprivate(set) var isBehind = false
        /// The topmost promise, if it is a combinator.
        private(set) var combinator: CombinatorCore?
        /// A promise with further waiting handlers, to which the row leads.
        // Not owned: it exists as long as this thread does not run its waiter, and the first pass runs nothing.
        fileprivate var shared: CoreRef?
        /// `true` if the row ends below a promise with further waiting handlers.
        var isBelowShared: Bool { shared != nil }
        /// The rows that lead to this one, and whether they end at its beginning, not at a combinator.
        fileprivate var below: [Int] = []
        fileprivate var isShared = false

        /// Climbs from `first`, and marks.
        /// - Parameters:
        ///   - waiter: the waiter that leads to the first, if any.
        ///   - isWanted: whether another handler waits for the first, if known.
        ///   - start: where the cancellation began, unless it begins here.
        init(from first: CoreRef, below waiter: PromiseCore?, isWanted: Bool?, startedAt start: CoreRef?) {
            self.first = first.object
            let here = LoopRef.ofThisThread
            var (next, waiter, isWanted) = (first, waiter, isWanted)
            while true {
                let core = next.object
                // Promises that wait for each other in a circle lead back to the start. Without `start` that is `first`
                // itself, which is therefore compared only after the first step.
                let isStart = next == (height == 0 ? start : start ?? first)
                guard !isStart, let loop = core.loop, core.state.load().isClaimable else { break }
                let isExternal = core.role.contains(.externallySettled)
                // A promise of another thread is examined there.
                if !isExternal && loop != here {
                    height += 1
                    break
                }
                if !isExternal && here.borrow({ $0.hasEnded }) { break }
                // Where several rows meet, each ends: `Rows` continues.
                if isWanted ?? core.isWanted(besides: waiter) {
                    shared = next
                    break
                }
                if isExternal {
                    height += 1
                    if core.mayWaitForCleanUps { endsLater() }
                    break
                }
                let producer = core.settlingCore
                if producer.marks.contains(.isEndingCancelled) {
                    // By an earlier cancellation.
                    isBehind = true
                    later = height
                    return
                }
                height += 1
                producer.marks.insert(.isEndingCancelled)
                let word = producer.upstream.load()
                if word == .none {
                    combinator = producer.asCombinator
                    break
                }
                if producer.isShielding {
                    if word.isWaiting { later = height }
                    return
                }
                if producer.isToRun { endsLater() }
                guard word.isWaiting else { break }
                (next, waiter, isWanted) = (word.core, producer, nil)
            }
        }

        private mutating func endsLater() {
            later = height
            laterBelowWork = height
        }

        /// A clean-up in progress where several rows meet may wait for this very cancellation, in a circle, so it is
        /// not waited for.
        fileprivate mutating func doesNotWaitForWork() {
            later = laterBelowWork
            isBehind = false
        }
    }

    /// The rows of a cancellation that reaches a combinator.
    struct Rows {
        private let start: CoreRef
        private var rows: [Row]
        /// The rows that end at a promise with several waiters, by its address.
        private var shared: [UInt: [Int]] = [:]
        /// The first row whose combinator has not been examined.
        private var next = 0

        /// All rows, from `chain` upwards.
        static func from(_ chain: Row) -> [Row] {
            var all = Rows(start: chain.first.ref, rows: [chain])
            repeat { all.climbCombinators() } while all.climbShared()
            all.passDown()
            return all.rows
        }

        private init(start: CoreRef, rows: [Row]) {
            self.start = start
            self.rows = rows
        }

        private mutating func add(_ row: Row) {
            if let core = row.shared { shared[core.address, default: []].append(rows.count) }
            rows.append(row)
        }

        /// Adds the sources of the combinators to which rows lead.
        private mutating func climbCombinators() {
            while next < rows.count {
                for input in rows[next].combinator?.inputs ?? [] {
                    input.marks.insert(.isEndingCancelled)
                    let word = input.upstream.load()
                    guard word.isWaiting else { continue }
                    var row = Row(from: word.core, below: input, isWanted: nil, startedAt: start)
                    row.below = [next]
                    add(row)
                }
                next += 1
            }
        }

        /// Continues the cancellation where all waiters of a promise have been marked.
        /// - Returns: whether there was such a promise.
        private mutating func climbShared() -> Bool {
            let joined = shared.filter { _, ends in
                rows[ends[0]].shared?.borrow { $0.isWanted } == false
            }
            for (address, ends) in joined {
                shared[address] = nil
                guard let core = rows[ends[0]].shared else { continue }
                var row = Row(from: core, below: nil, isWanted: false, startedAt: start)
                (row.below, row.isShared) = (ends, true)
                row.doesNotWaitForWork()
                add(row)
            }
            return !joined.isEmpty
        }

        /// Rows below one that does not settle at once do not either.
        private mutating func passDown() {
            for index in rows.indices.reversed() where rows[index].later > 0 || rows[index].isBehind {
                for end in rows[index].below {
                    rows[end].later = rows[end].height
                    if rows[index].isShared { rows[end].isBehind = true }
                }
            }
        }
    }
}
