@testable import PromisesTestSupport

/// Loops written as recursion run forever: a promise that a handler returns is linked to the one that it settles, so
/// the levels do not accumulate.
struct RecursionTests {
    @Test(arguments: Shape.allCases) func levelsDoNotAccumulate(shape: Shape) { Self.check(shape, scaled(20_000)) }

    // In a separate process: other tests allocate too. Forwarding instead of linking takes 270 bytes per level.
    @Test(.ownThread, .disabled(if: isSanitized)) func millionsOfRoundsTakeNoMemory() async {
        await #expect(processExitsWith: .success) {
            for shape in RecursionTests.Shape.allCases {
                RecursionTests.check(shape, 5_000)
                let before = residentBytes()
                RecursionTests.check(shape, shape.manyRounds)
                let growth = residentBytes() - before
                // One page per thousand rounds would exceed this; one word per round exceeds it many times.
                precondition(growth < 2 << 20 || growth < shape.manyRounds / 8, "\(shape): \(growth) bytes")
            }
        }
    }

    enum Shape: CaseIterable {
        case then, thenOfAPendingPromise, thenOfATimer, thenOfAGuarantee, recover, ensureThen, operators
        case rejectedAtTheEnd, mutual, mutualOfThree
        /// A variable holds the promise of the present level, so no promise is linked.
        case inAVariable

        var manyRounds: Int {
            #if DEBUG
            50_000
            #else
            hasTimers ? 500_000 : 10_000_000
            #endif
        }

        private var hasTimers: Bool {
            [.thenOfATimer, .operators, .rejectedAtTheEnd, .inAVariable].contains(self)
        }
    }

    // Few things here throw: the test library keeps a backtrace of each thrown error.
    private static func check(_ shape: Shape, _ count: Int) {
        let tally = Tally()
        inLoop { _ in
            let rounds = Rounds(tally)
            let end = rounds.begin(shape, count)
            var handlers = 0
            for _ in 0..<2 { end.ensure { handlers += 1 }.ignoringErrors() }
            let outcome = Result(catching: { try hang(end) })
            let isRight =
                shape == .rejectedAtTheEnd ? outcome.flaw == Flaw(7) : (try? outcome.get()) == 0
            precondition(isRight && rounds.count == count && handlers == 2, "\(shape): \(outcome), \(rounds.count)")
        }
        precondition(tally.alive == 0 && tally.peak < 20, "\(shape): \(tally.peak) closures at a time")
    }

    private final class Rounds {
        private let tally: Tally
        private(set) var count = 0
        private var current: Promise<Int>?

        init(_ tally: Tally) { self.tally = tally }

        func begin(_ shape: Shape, _ depth: Int) -> Promise<Int> {
            switch shape {
            case .then: then(depth)
            case .thenOfAPendingPromise: pending(depth)
            case .thenOfATimer: timer(depth)
            case .thenOfAGuarantee: guarantee(depth).asPromise()
            case .recover: recover(depth)
            case .ensureThen: cleanup(depth)
            case .operators: operators(depth)
            case .rejectedAtTheEnd: failing(depth)
            case .mutual: ping(depth)
            case .mutualOfThree: first(depth)
            case .inAVariable: inAVariable(depth)
            }
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

        private func timer(_ left: Int) -> Promise<Int> {
            if left == 0 { return .value(0) }
            let token = tally.token()
            return after(.milliseconds(1)).then { [self] in
                pass(token)
                return timer(left - 1)
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
            // The cleanup of each level holds the outcome; none may be kept.
            return Promise.value(left).ensureThen { [self] in
                pass(token)
                return left % 2 == 0 ? Guarantee.value(1).asVoid() : after(.milliseconds(1))
            }.then { [self] left in cleanup(left - 1) }
        }

        private func operators(_ left: Int) -> Promise<Int> {
            if left == 0 { return .value(0) }
            let token = tally.token()
            return after(.milliseconds(1)).then { left % 3 == 0 ? Promise(error: Flaw()) : Promise.value(left) }
                .recover { _ in Promise.value(left) }.map { $0 - 1 }.ensure {}.get { [self] _ in pass(token) }
                .then { [self] left in operators(left) }
        }

        private func failing(_ left: Int) -> Promise<Int> {
            if left == 0 { return Promise(error: Flaw(7)) }
            let token = tally.token()
            return after(.milliseconds(1)).then { [self] in
                pass(token)
                return failing(left - 1)
            }
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

        private func inAVariable(_ left: Int) -> Promise<Int> {
            if left == 0 { return .value(0) }
            let token = tally.token()
            let next = after(.milliseconds(1)).map { left }.then { [self] left in
                pass(token)
                return inAVariable(left - 1)
            }
            current = next
            return next
        }
    }
}
