@testable import Promises
@testable import PromisesTestSupport

/// A loop keeps the nodes with which combinators waited, and reuses them. No combinator may be affected by the earlier
/// use of a node.
struct NodeReuseTests {
    private let loop = EventLoop.current

    private static var keepsNodes: Bool { !isSanitized }

    /// The nodes that the loop keeps, in the order in which it would reuse them.
    private func keptNodes(_ loop: EventLoop) -> [UnsafeMutableRawPointer] {
        var kept: [UnsafeMutableRawPointer] = []
        var nodes: [Unmanaged<Job>] = []
        while let node = loop.takeSpare() {
            kept.append(node.toOpaque())
            nodes.append(node)
        }
        for node in nodes.reversed() where !loop.keepSpare(node) { node.release() }
        return kept
    }

    /// The test keeps them to its end, since a promise whose resolvers are released is abandoned.
    private func pairs(_ count: Int) -> [(promise: Promise<Int>, resolver: Resolver<Int>)] {
        (0..<count).map { _ in Promise<Int>.pending() }
    }

    private func race(of pairs: [(promise: Promise<Int>, resolver: Resolver<Int>)]) -> Promise<Int> {
        Promises.race(pairs.map(\.promise))
    }

    @Test(.inLoop, .enabled(if: Self.keepsNodes)) func losersGiveTheirNodesToTheNextRace() throws {
        expect(keptNodes(loop).isEmpty)
        let first = pairs(3)
        defer { withExtendedLifetime(first) {} }
        let winner = race(of: first)
        first[1].resolver.fulfill(1)
        expectEqual(winner.settledValue, 1)
        let kept = keptNodes(loop)
        expect(kept.count >= 2)
        let next = pairs(kept.count)
        defer { withExtendedLifetime(next) {} }
        let second = race(of: next)
        expect(keptNodes(loop).isEmpty)
        expect(second.isPending && next.allSatisfy { $0.promise.isPending })
        next.last?.resolver.fulfill(7)
        expectEqual(second.settledValue, 7)
        expect(Set(keptNodes(loop)).isSuperset(of: kept.dropFirst()))
    }

    /// Its node is still in the source's list, after the other handler's.
    @Test(.inLoop) func aLoserWithAnotherHandlerDoesNot() throws {
        let sources = pairs(2)
        defer { withExtendedLifetime(sources) {} }
        let winner = race(of: sources)
        let other = sources[0].promise.map { $0 * 10 }
        sources[1].resolver.fulfill(1)
        expect(winner.settledValue == 1 && sources[0].promise.isPending)
        let next = pairs(3)
        defer { withExtendedLifetime(next) {} }
        let second = race(of: next)
        sources[0].resolver.fulfill(4)
        try loop.run()
        expect(other.settledValue == 40 && second.isPending)
        next[0].resolver.fulfill(3)
        expectEqual(second.settledValue, 3)
    }
}
