import Reactor
import Synchronization

// The first pass of a cancellation.

extension Cancellation {
    /// Promises that wait for one another: up to a combinator, or to one that several rows lead to.
    struct Row {
        /// The lowest.
        let first: PromiseCore
        /// How many there are.
        private(set) var height = 0
        /// How many of them, from the lowest one upwards, do not settle at once.
        fileprivate(set) var later = 0
        /// The same without a clean-up that is at work above.
        private var laterBelowWork = 0
        /// Whether what the topmost one waits for does not settle at once.
        fileprivate(set) var isBehind = false
        /// The topmost one, if it is a combinator.
        private(set) var combinator: CombinatorCore?
        /// A promise that further handlers wait for, to which the row leads.
        // Not owned: it exists as long as this thread does not run its waiter, and the first pass runs nothing.
        fileprivate var shared: CoreRef?
        /// The rows that lead to it, and whether they end where it begins, and not at a combinator.
        fileprivate var below: [Int] = []
        fileprivate var isShared = false

        /// Climbs from `first`, and marks.
        /// - Parameters:
        ///   - waiter: the waiter that leads to the first, if it is one.
        ///   - isWanted: whether another handler waits for the first, if that is known.
        ///   - start: where the cancellation began, unless it begins here.
        init(from first: CoreRef, below waiter: PromiseCore?, isWanted: Bool?, startedAt start: CoreRef?) {
            self.first = first.object
            let here = LoopRef.ofThisThread
            var (next, waiter, isWanted) = (first, waiter, isWanted)
            while true {
                let core = next.object
                // Promises that wait for each other in a circle lead back to the start.
                let isStart = next == (height == 0 ? start : start ?? first)
                guard !isStart, let loop = core.loop, core.state.load().isClaimable else { break }
                let isExternal = core.role.contains(.externallySettled)
                // That of another thread is looked at there.
                if !isExternal && loop != here {
                    height += 1
                    break
                }
                if !isExternal && here.borrow({ $0.hasEnded }) { break }
                // Where several rows meet, each ends: `Rows` goes on.
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
                    if producer.isCombinator { combinator = producer.as(CombinatorCore.self) }
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

        /// A clean-up that is at work where several rows meet may wait for this very cancellation, in a circle: it is not waited
        /// for.
        fileprivate mutating func doesNotWaitForWork() {
            later = laterBelowWork
            isBehind = false
        }
    }

    /// The rows of a cancellation that comes to a combinator.
    struct Rows {
        private let start: CoreRef
        private var rows: [Row]
        /// Those that end at a promise with several waiters, by its address.
        private var shared: [UInt: [Int]] = [:]
        /// The first one whose combinator has not been looked at.
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

        /// Where all waiters of a promise have been marked, the cancellation goes on.
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

        /// What is below a row that does not settle at once does not either.
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
