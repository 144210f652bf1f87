import Reactor

// The first pass of a cancellation.

extension Cancellation {
    /// Promises that wait for one another: up to a combinator, or to a promise that several rows lead to.
    struct Row {
        /// The lowest promise, at place 0.
        let first: PromiseCore
        /// The number of promises.
        private(set) var height = 0
        /// The place of the topmost promise that ends later: those below wait for it, those above end now. `height`: the
        /// source of the topmost promise in the row, which is in another row or in none.
        private var topmostLater: Int?
        /// The topmost promise, if it is a combinator.
        private(set) var combinator: CombinatorCore?
        /// A promise with further waiting handlers, below which the row ends.
        // Not owned: it exists as long as this thread does not run its waiter, and the first pass runs nothing.
        private(set) var shared: CoreRef?
        /// The rows that lead to this one.
        private var below: [Int] = []

        /// How the promise at `place` ends, which `producer` settles.
        func ending(of producer: PromiseCore, at place: Int) -> Ending {
            guard let topmostLater, place <= topmostLater else { return producer.endingByItself }
            if place < topmostLater { return .afterSource }
            return producer === combinator ? .afterInputs : producer.endingByItself
        }

        /// Climbs from `first`, and marks.
        /// - Parameters:
        ///   - waiter: the waiter that leads to the first, if any.
        ///   - isWanted: whether another handler waits for the first, if known.
        ///   - start: where the cancellation began.
        ///   - isJoint: whether several rows lead to the first.
        init(
            from first: CoreRef, below waiter: PromiseCore? = nil, isWanted: Bool? = nil, startedAt start: CoreRef,
            isJoint: Bool = false
        ) {
            self.first = first.object
            climb(from: first, below: waiter, isWanted, startedAt: start, isJoint: isJoint)
        }

        private mutating func climb(
            from first: CoreRef, below waiter: PromiseCore?, _ isWanted: Bool?, startedAt start: CoreRef, isJoint: Bool
        ) {
            let here = LoopRef.ofThisThread
            var (next, waiter, isWanted) = (first, waiter, isWanted)
            while true {
                let core = next.object
                guard let loop = core.loop, core.state.load().isClaimable else { return }
                let isExternal = core.role.contains(.externallySettled)
                // A promise of another thread is examined there.
                if !isExternal && loop != here { return height += 1 }
                if !isExternal && here.borrow({ $0.hasEnded }) { return }
                // Where several rows meet, each ends: `all` continues.
                if isWanted ?? core.isWanted(besides: waiter) { return shared = next }
                if isExternal {
                    if core.mayWaitForCleanUps { topmostLater = height }
                    return height += 1
                }
                let producer = core.settlingCore
                if producer.marks.contains(.isEndingCancelled) {
                    // By an earlier cancellation; or promises that wait for each other in a circle have led back to the
                    // start. Work in progress where rows meet may wait for this very cancellation, in a circle, so it
                    // is not waited for.
                    if next != start && !isJoint { topmostLater = height }
                    return
                }
                producer.marks.insert(.isEndingCancelled)
                let word = producer.upstream.load()
                let ending = producer.endingByItself
                if ending == .afterCleanUp || ending == .afterSource && !isJoint { topmostLater = height }
                height += 1
                if word == .none { combinator = producer.asCombinator }
                guard word.isWaiting && ending != .afterSource else { return }
                (next, waiter, isWanted) = (word.core, producer, nil)
            }
        }

        /// The rows of a cancellation that has reached a combinator, from `first` upwards.
        static func all(from first: Row) -> [Row] {
            let start = first.first.ref
            var rows = [first]
            // The rows that end below a promise with several waiters.
            var shared: [CoreRef: [Int]] = [:]
            var next = 0
            while next < rows.count {
                for input in rows[next].combinator?.inputs ?? [] {
                    input.marks.insert(.isEndingCancelled)
                    let word = input.upstream.load()
                    guard word.isWaiting else { continue }
                    var row = Row(from: word.core, below: input, startedAt: start)
                    row.below = [next]
                    rows.append(row)
                }
                if let end = rows[next].shared { shared[end, default: []].append(next) }
                next += 1
                guard next == rows.count else { continue }
                // The cancellation continues where all waiters of a promise have been marked, in the order of the climb.
                let joined = shared.filter { core, _ in !core.borrow { $0.isWanted } }
                for (core, ends) in joined.sorted(by: { $0.value[0] < $1.value[0] }) {
                    shared[core] = nil
                    var row = Row(from: core, isWanted: false, startedAt: start, isJoint: true)
                    row.below = ends
                    rows.append(row)
                }
            }
            // What waits for a row that ends later does so too.
            for index in rows.indices.reversed() where rows[index].topmostLater != nil {
                for end in rows[index].below {
                    rows[end].topmostLater = rows[end].height - (rows[end].combinator == nil ? 0 : 1)
                }
            }
            return rows
        }
    }
}
