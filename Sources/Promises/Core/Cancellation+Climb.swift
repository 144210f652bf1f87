import Reactor

// The first pass of a cancellation.

extension Cancellation {
    /// Promises that wait for one another: up to a combinator, or to a promise that several rows lead to.
    struct Row {
        /// The lowest promise, at place 0.
        let first: PromiseCore
        /// The number of promises.
        private(set) var height = 0
        /// The place of the topmost promise that ends later: those below wait for it, those above end now. `height`: a
        /// source of the topmost promise in the row, which is in another row or in none.
        private var topmostLater: Int?
        /// The topmost promise, if it is a combinator.
        private(set) var combinator: CombinatorCore?
        /// The promise below which the row ends, because other handlers wait for it.
        private(set) var shared: PromiseCore?
        /// The line of the topmost promise, where the rejection comes from, if it is known.
        private(set) var origin: CallSite?
        /// The rows that lead to this one: none, one with a combinator, or several, which meet here.
        private let below: [Int]

        /// Where rows have ended below a promise that further handlers wait for, with their indices.
        fileprivate typealias Ends = [CoreRef: [Int]]

        private init(
            from first: PromiseCore, below: [Int] = [], sparesWanted: Bool = true, startedAt start: PromiseCore,
            _ ends: Ends = [:]
        ) {
            (self.first, self.below) = (first, below)
            climb(sparesWanted, startedAt: start, ends)
        }

        /// How the promise at `place` ends, which `producer` settles.
        func ending(of producer: PromiseCore, at place: Int) -> Ending {
            if let topmostLater, place < topmostLater { .afterSource } else { producer.endingByItself }
        }

        /// Climbs from `first`, and marks.
        private mutating func climb(_ sparesWanted: Bool, startedAt start: PromiseCore, _ ends: Ends) {
            let here = LoopRef.ofThisThread
            // Where several rows meet, work in progress may wait for this very cancellation, in a circle, so it is not
            // waited for.
            let waitsForWork = below.count < 2
            var core = first
            while true {
                guard let loop = core.loop, core.state.load().isClaimable else { return }
                let isExternal = core.role.contains(.externallySettled)
                if !isExternal {
                    // A promise of another thread is examined there.
                    if loop != here { return height += 1 }
                    // The loop has ended: it ends its promises itself, and runs no clean-ups.
                    if here.borrow({ $0.hasEnded }) { return }
                }
                // Where one row has ended, all do: `all` continues when the last handler has been marked.
                if ends[core.ref] != nil || (sparesWanted || core !== first) && core.isStillWanted() {
                    shared = core
                    origin = core.callSite
                    return
                }
                if isExternal {
                    origin = core.callSite
                    if core.mayEndLater { topmostLater = height }
                    return height += 1
                }
                let producer = core.settlingCore
                if producer.marks.contains(.isEndingCancelled) {
                    // By an earlier cancellation; or promises that wait for each other in a circle have led back to the
                    // start.
                    if core !== start && waitsForWork { topmostLater = height }
                    return
                }
                producer.marks.insert(.isEndingCancelled)
                let word = producer.upstream.load()
                let ending = producer.endingByItself
                if ending == .afterCleanUp || ending == .afterSource && waitsForWork { topmostLater = height }
                height += 1
                if word == .none { combinator = producer.asCombinator }
                guard let source = word.source, ending != .afterSource else { return }
                core = source
            }
        }

        /// The rows of a cancellation, from `start` upwards.
        static func all(from start: PromiseCore, sparesWanted: Bool) -> [Row] {
            var rows = [Row(from: start, sparesWanted: sparesWanted, startedAt: start)]
            var ends: Ends = [:]
            func append(_ row: Row) {
                if let shared = row.shared { ends[shared.ref, default: []].append(rows.count) }
                rows.append(row)
            }
            var next = 0
            while next < rows.count {
                for input in rows[next].combinator?.inputs ?? [] {
                    input.marks.insert(.isEndingCancelled)
                    guard let source = input.upstream.load().source else { continue }
                    append(Row(from: source, below: [next], startedAt: start, ends))
                }
                next += 1
                guard next == rows.count else { continue }
                // The cancellation continues where all waiters of a promise have been marked, in the order of the climb.
                let joined = ends.filter { core, _ in !core.borrow { $0.isStillWanted() } }
                for (core, below) in joined.sorted(by: { $0.value[0] < $1.value[0] }) {
                    ends[core] = nil
                    append(Row(from: core.object, below: below, sparesWanted: false, startedAt: start, ends))
                    for row in below { rows[row].shared = nil }
                }
            }
            // What waits for a row that ends later does so too.
            for index in rows.indices.reversed() where rows[index].topmostLater != nil {
                for end in rows[index].below { rows[end].topmostLater = rows[end].height }
            }
            return rows
        }
    }
}
