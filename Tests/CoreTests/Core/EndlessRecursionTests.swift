import Promises
import Reactor
import TestSupport
import Testing

@testable import PromisesTestSupport

/// Loops written as recursion run forever: ten million rounds take no more memory than ten thousand.
@Suite struct EndlessRecursionTests {
    // In a separate process: other tests allocate too.
    @Test(.ownThread, .disabled(if: isSanitized)) func takesNoMemory() async {
        await #expect(processExitsWith: .success) {
            for shape in EndlessRecursionTests.Shape.allCases { EndlessRecursionTests.measure(shape) }
        }
    }

    fileprivate enum Shape: CaseIterable {
        case then, thenOfAPendingPromise, thenOfAGuarantee, recover, ensureThen, mutual, mutualOfThree
    }

    private static var depth: Int {
        #if DEBUG
        50_000
        #else
        10_000_000
        #endif
    }

    // Nothing here throws: the test library keeps a backtrace of each thrown error.
    fileprivate static func measure(_ shape: Shape) {
        let tally = Tally()
        let rounds = Rounds(tally)
        inLoop { _ in
            let short = rounds.run(shape, 5_000)
            let before = residentBytes()
            let long = rounds.run(shape, depth)
            let growth = residentBytes() - before
            precondition(short == 5_000 && long == depth, "\(shape): \(short) and \(long) rounds")
            // One page per thousand rounds would exceed this; one word per round exceeds it many times.
            precondition(growth < 2 << 20 || growth < depth / 8, "\(shape): \(growth) bytes for \(depth) rounds")
        }
        precondition(tally.alive == 0 && tally.peak < 20, "\(shape): \(tally.peak) closures at a time")
    }

    private final class Rounds {
        private let tally: Tally
        private var count = 0

        init(_ tally: Tally) { self.tally = tally }

        func run(_ shape: Shape, _ depth: Int) -> Int {
            count = 0
            let end: Promise<Int> =
                switch shape {
                case .then: then(depth)
                case .thenOfAPendingPromise: pending(depth)
                case .thenOfAGuarantee: guarantee(depth).asPromise()
                case .recover: recover(depth)
                case .ensureThen: cleanup(depth)
                case .mutual: ping(depth)
                case .mutualOfThree: first(depth)
                }
            guard case .success(0) = Result(catching: { try hang(end) }) else { return -1 }
            return count
        }

        /// One round of any of them.
        private func pass(_ token: Tally.Token) {
            token.use()
            count += 1
        }

        private func then(_ left: Int) -> Promise<Int> {
            if left == 0 { return .value(0) }
            let token = tally.token()
            return Promise.value(left).then { [self] left in
                pass(token)
                return then(left - 1)
            }
        }

        private func pending(_ left: Int) -> Promise<Int> {
            if left == 0 { return .value(0) }
            let token = tally.token()
            let (promise, resolver) = Promise<Int>.pending()
            defer { EventLoop.current.enqueue { resolver.fulfill(left) } }
            return promise.then { [self] left in
                pass(token)
                return pending(left - 1)
            }
        }

        private func guarantee(_ left: Int) -> Guarantee<Int> {
            if left == 0 { return .value(0) }
            let token = tally.token()
            return Guarantee.value(left).then { [self] left in
                pass(token)
                return guarantee(left - 1)
            }
        }

        private func recover(_ left: Int) -> Promise<Int> {
            if left == 0 { return .value(0) }
            let token = tally.token()
            return Promise<Int>(error: Flaw(left)).recover { [self] _ in
                pass(token)
                return recover(left - 1)
            }
        }

        private func cleanup(_ left: Int) -> Promise<Int> {
            if left == 0 { return .value(0) }
            let token = tally.token()
            return Promise.value(left).ensureThen { [self] in
                pass(token)
                return Guarantee.value(1).asVoid()
            }.then { [self] left in cleanup(left - 1) }
        }

        private func ping(_ left: Int) -> Promise<Int> {
            if left == 0 { return .value(0) }
            let token = tally.token()
            return Promise.value(left).map { $0 - 1 }.then { [self] left in
                pass(token)
                return pong(left)
            }
        }

        private func pong(_ left: Int) -> Promise<Int> {
            if left == 0 { return .value(0) }
            let token = tally.token()
            return Promise<Int>(error: Flaw()).recover { [self] _ in
                pass(token)
                return ping(left - 1)
            }
        }

        private func first(_ left: Int) -> Promise<Int> {
            if left == 0 { return .value(0) }
            let token = tally.token()
            return Promise.value(()).then { [self] in
                pass(token)
                return second(left - 1)
            }
        }

        private func second(_ left: Int) -> Promise<Int> {
            if left == 0 { return .value(0) }
            let token = tally.token()
            return Guarantee.value(()).then { [self] in
                pass(token)
                return third(left - 1)
            }
        }

        private func third(_ left: Int) -> Promise<Int> {
            if left == 0 { return .value(0) }
            let token = tally.token()
            return Promise.value(()).ensureThen { .value }.then { [self] in
                pass(token)
                return first(left - 1)
            }
        }
    }
}
