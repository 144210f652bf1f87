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
                // In debug, some 100 bytes a round exceed this; in release, a page per thousand rounds.
                precondition(growth < 3 << 18 || growth < shape.manyRounds / 8, "\(shape): \(growth) bytes")
            }
        }
    }

    enum Shape: CaseIterable {
        case then, thenOfAPendingPromise, thenOfATimer, thenOfAGuarantee, recover, ensureThen, operators
        case rejectedAtTheEnd
        /// By turns.
        case mixed
        /// A variable holds the promise of the present level, so no promise is linked.
        case inAVariable

        var manyRounds: Int {
            #if DEBUG
            8_000
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
            // The handlers may be jobs of the next turn.
            hang(after(.zero))
            let isRight = shape == .rejectedAtTheEnd ? outcome.flaw == Flaw(7) : (try? outcome.get()) == 0
            precondition(isRight && rounds.count == count && handlers == 2, "\(shape): \(outcome), \(rounds.count)")
        }
        precondition(tally.alive == 0 && tally.peak < 20, "\(shape): \(tally.peak) closures at a time")
    }

    private final class Rounds {
        private let tally: Tally
        private(set) var count = 0
        private var current: Promise<Int>?

        init(_ tally: Tally) { self.tally = tally }

        func begin(_ shape: Shape, _ left: Int) -> Promise<Int> {
            shape == .thenOfAGuarantee ? guarantee(left).asPromise() : level(shape, left)
        }

        private func guarantee(_ left: Int) -> Guarantee<Int> {
            if left == 0 { return .value(0) }
            let token = tally.token()
            return Guarantee.value(left).then { [self] left in
                token.use()
                count += 1
                return guarantee(left - 1)
            }
        }

        private func level(_ shape: Shape, _ left: Int) -> Promise<Int> {
            if left == 0 { return shape == .rejectedAtTheEnd ? Promise(error: Flaw(7)) : .value(0) }
            let token = tally.token()
            let next = { [self] () -> Promise<Int> in
                token.use()
                count += 1
                return level(shape, left - 1)
            }
            switch shape {
            case .then, .thenOfAGuarantee: return Promise.value(left).then { _ in next() }
            case .thenOfAPendingPromise:
                let (promise, resolver) = Promise<Int>.pending()
                defer { EventLoop.current.enqueue { resolver.fulfill(left) } }
                return promise.then { _ in next() }
            case .thenOfATimer, .rejectedAtTheEnd: return after(.milliseconds(1)).then { next() }
            case .recover: return Promise<Int>(error: Flaw(left)).recover { _ in next() }
            case .ensureThen:
                // The cleanup of each level holds the outcome; none may be kept.
                return Promise.value(left).ensureThen {
                    token.use()
                    return left % 2 == 0 ? Guarantee.value(1).asVoid() : after(.milliseconds(1))
                }.then { _ in next() }
            case .operators:
                return after(.milliseconds(1)).then { left % 3 == 0 ? Promise(error: Flaw()) : Promise.value(left) }
                    .recover { _ in Promise.value(left) }.map { $0 - 1 }.ensure {}.get { _ in token.use() }
                    .then { _ in next() }
            case .mixed:
                switch left % 5 {
                case 0: return Promise.value(left).map { $0 - 1 }.then { _ in next() }
                case 1: return Promise<Int>(error: Flaw()).recover { _ in next() }
                case 2: return Promise.value(()).then { next() }
                case 3: return Guarantee.value(()).then { next() }
                default: return Promise.value(()).ensureThen { .value }.then { next() }
                }
            case .inAVariable:
                let step = after(.milliseconds(1)).map { left }.then { _ in next() }
                current = step
                return step
            }
        }
    }
}
