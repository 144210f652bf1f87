@testable import Promises
@testable import PromisesTestSupport

/// A loop keeps the nodes with which combinators waited, and reuses them. No combinator may be affected by the earlier
/// use of a node.
struct NodeReuseTests {
    private let loop = EventLoop.current
    private let tally = Tally()

    private static var keepsNodes: Bool { !isSanitized }

    /// The nodes that the loop keeps, in the order in which it would reuse them.
    private func keptNodes(_ loop: EventLoop) -> [UnsafeMutableRawPointer] {
        var kept: [UnsafeMutableRawPointer] = []
        var nodes: [Unmanaged<Job>] = []
        while let node = loop.takeSpareNode() {
            kept.append(node.toOpaque())
            nodes.append(node)
        }
        for node in nodes.reversed() where !loop.keepSpareNode(node) { node.release() }
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

    @Test(.inLoop) func soDoTheSourcesOfWhen() throws {
        for round in 0..<3 {
            let sources = pairs(5)
            defer { withExtendedLifetime(sources) {} }
            let all = when(fulfilled: sources.map(\.promise))
            for (index, source) in sources.enumerated() { source.resolver.fulfill(round * 10 + index) }
            expectEqual(all.settledValue, (0..<5).map { round * 10 + $0 })
        }
        expect(keptNodes(loop).count <= 5)
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

    @Test(.inLoop) func aLoopKeepsNoMoreThanItsBound() throws {
        let sources = pairs(300)
        defer { withExtendedLifetime(sources) {} }
        let winner = race(of: sources)
        sources[0].resolver.fulfill(0)
        expect(winner.isFulfilled)
        expectEqual(keptNodes(loop).count, (Self.keepsNodes ? 128 : 0))
    }

    /// A kept node has released its combinator, and with it everything that the combinator held.
    @Test(.inLoop) func aKeptNodeHoldsNothing() throws {
        for _ in 0..<3 {
            let (promise, resolver) = Promise<Tally.Token>.pending()
            let (other, otherResolver) = Promise<Tally.Token>.pending()
            let winner = Promises.race(promise, other)
            resolver.fulfill(tally.token())
            expect(winner.isFulfilled && other.isRejected && tally.alive == 1)
            withExtendedLifetime(otherResolver) {}
        }
        expectEqual(tally.alive, 0)
    }

    /// Races, cancellations, rejections and handlers of losers in a random order, with their expected results.
    @Test(.inLoop, arguments: [1, 2, 3]) func combinatorsOfOneLoopDoNotDisturbOneAnother(seed: UInt64) throws {
        var dice = SplitMix64(seed)
        for _ in 0..<300 {
            let sources = pairs(Int.random(in: 1...6, using: &dice))
            defer { withExtendedLifetime(sources) {} }
            let others = pairs(2)
            defer { withExtendedLifetime(others) {} }
            let winner = race(of: sources)
            let all = when(fulfilled: others.map(\.promise))
            let handled = Bool.random(using: &dice) ? sources.last?.promise.map { $0 } : nil
            let chosen = Int.random(in: 0..<sources.count, using: &dice)
            switch Int.random(in: 0..<4, using: &dice) {
            case 0:
                winner.cancel()
                expect(winner.error as? PromiseError == .cancelled)
            case 1:
                sources[chosen].resolver.reject(PromiseError.timedOut)
                expect(winner.error as? PromiseError == .timedOut)
            default:
                sources[chosen].resolver.fulfill(chosen)
                expectEqual(winner.settledValue, chosen)
            }
            winner.cauterize()
            try loop.turn(.poll)
            handled?.cauterize()
            for (index, source) in sources.enumerated() where index != chosen {
                expectEqual(source.promise.isPending, (handled != nil && index == sources.count - 1))
            }
            others[1].resolver.fulfill(2)
            others[0].resolver.fulfill(1)
            expectEqual(all.settledValue, [1, 2])
        }
    }
}
