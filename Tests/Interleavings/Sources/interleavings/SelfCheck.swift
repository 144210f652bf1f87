import Exploring
import Glibc
import Model

@testable import Reactor

/// What the checker must find in a few lines of which all interleavings are known.
func checkTheChecker() {
    func count(_ name: String, _ expected: Int, _ body: @escaping () -> Void) {
        var explorer = Explorer(.none, body)
        let isComplete = explorer.explore(atMost: 10_000)
        checkEqual(explorer.newRuns, expected)
        check(isComplete, name)
    }
    final class Words: Sendable {
        let one = Model.Atomic<Int>(0)
        let two = Model.Atomic<Int>(0)
        let lock = LockedValue(0)
    }
    count("two steps of two threads at one place", 6) {
        let words = Words()
        for _ in 0..<2 {
            thread {
                words.one.add(1, ordering: .relaxed)
                words.one.add(1, ordering: .relaxed)
            }
        }
    }
    count("three threads at one place", 6) {
        let words = Words()
        for _ in 0..<3 { thread { words.one.add(1, ordering: .relaxed) } }
    }
    count("two places", 1) {
        let words = Words()
        thread { words.one.add(1, ordering: .relaxed) }
        thread { words.two.add(1, ordering: .relaxed) }
    }
    count("loads", 1) {
        let words = Words()
        for _ in 0..<3 { thread { _ = words.one.load(ordering: .relaxed) } }
    }
    count("a lock for three threads", 6) {
        let words = Words()
        for _ in 0..<3 { thread { words.lock.withLock { $0 += 1 } } }
    }
    // Both outcomes of an update that is lost or not, and all three of two stores that are seen or not (not 0, 0).
    for bound in [Explorer.Bound.none, .preemptions(1)] {
        var sums = Set<Int>()
        var updates = Explorer(bound) {
            let words = Words()
            for _ in 0..<2 { thread { words.one.store(words.one.load(ordering: .relaxed) + 1, ordering: .relaxed) } }
            atEnd { sums.insert(words.one.load(ordering: .relaxed)) }
        }
        check(updates.explore(atMost: 1000), "lost updates")
        checkEqual(sums, [1, 2])
        var seen = Set<Int>()
        var stores = Explorer(bound) {
            let words = Words()
            thread {
                words.one.store(1, ordering: .relaxed)
                if words.two.load(ordering: .relaxed) == 1 { words.lock.withLock { $0 += 1 } }
            }
            thread {
                words.two.store(1, ordering: .relaxed)
                if words.one.load(ordering: .relaxed) == 1 { words.lock.withLock { $0 += 2 } }
            }
            atEnd { seen.insert(words.lock.withLock { $0 }) }
        }
        check(stores.explore(atMost: 1000), "stores")
        checkEqual(seen, [1, 2, 3])
    }
}
