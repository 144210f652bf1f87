@testable import PromisesTestSupport

/// Sequential operators take no more memory for a million rounds than for a thousand.
struct EndlessSequenceTests {
    // In a separate process: other tests allocate too.
    @Test(.ownThread, .disabled(if: isSanitized)) func takesNoMemory() async {
        await #expect(processExitsWith: .success) {
            for shape in EndlessSequenceTests.Shape.allCases {
                for isPending in [false, true] { EndlessSequenceTests.measure(shape, isPending) }
            }
        }
    }

    fileprivate enum Shape: CaseIterable {
        case repeatWhile, forEach, thenReduce, periodically

        /// Runs this many rounds, each with `body`'s promise.
        func run(_ count: Int, _ body: @escaping (Int) -> Promise<Int>) -> Promise<Int> {
            var rounds = 0
            switch self {
            case .repeatWhile:
                return Promises.repeatWhile {
                    rounds += 1
                    return body(rounds).map { $0 < count }
                }.map { rounds }
            case .periodically:
                return Promises.periodically(every: .nanoseconds(1)) {
                    rounds += 1
                    return body(rounds).map { $0 < count }
                }.map { rounds }
            case .forEach: return Promises.forEach(1...count) { body($0).map { rounds = $0 } }.map { rounds }
            case .thenReduce:
                return Promise.value(1...count).thenReduce(0) { sum, number in body(number).map { _ in sum + 1 } }
            }
        }
    }

    private static var rounds: Int {
        #if DEBUG
        8_000
        #else
        1_000_000
        #endif
    }

    // Nothing here throws: the test library keeps a backtrace of each thrown error.
    fileprivate static func measure(_ shape: Shape, _ isPending: Bool) {
        inLoop { loop in
            let body = { (number: Int) -> Promise<Int> in
                guard isPending else { return .value(number) }
                let (promise, resolver) = Promise<Int>.pending()
                loop.enqueue { resolver.fulfill(number) }
                return promise
            }
            func run(_ count: Int) -> Bool {
                guard case .success(count) = Result(catching: { try hang(shape.run(count, body)) }) else {
                    return false
                }
                return true
            }
            precondition(run(5_000), "\(shape)")
            let before = residentBytes()
            precondition(run(rounds), "\(shape)")
            let growth = residentBytes() - before
            // In debug, some 100 bytes a round exceed this; in release, a page per thousand rounds.
            precondition(growth < 3 << 18 || growth < rounds / 8, "\(shape): \(growth) bytes for \(rounds) rounds")
        }
    }

    /// A round that makes a value of the cancellation is the last one.
    @Test(.inLoop, arguments: 0..<6, [false, true]) func aCancelledSeriesBeginsNoOtherRound(form: Int, hasError: Bool)
        throws
    {
        let loop = EventLoop.current
        var rounds = 0
        let round = { () -> Guarantee<Bool> in
            rounds += 1
            return rounds == 5
                ? .value(false) : after(.seconds(10)).map { true }.asPromise().recover { _ in .value(true) }
        }
        let series: Promise<Void> =
            switch form {
            case 0: forEach(1...5) { _ in round() }
            case 1: repeatWhile { round() }
            case 2: periodically(every: .seconds(5)) { round() }
            case 3: when(fulfilled: 1...5, concurrently: 1) { _ in round() }.asVoid()
            case 4:
                retry(maxAttempts: 3) { _ in
                    round().asPromise().then { _ in Promise<Void>(error: Flaw(7)) }
                }
            default: Promise.value(1...5).thenReduce(1) { (_: Int, _: Int) in round().map { _ in 1 } }.asVoid()
            }
        loop.schedule(after: .seconds(1)) { if hasError { series.cancel(with: Flaw(1)) } else { series.cancel() } }
        try loop.run()
        expectEqual(rounds, 1)
        expect(hasError ? series.flaw == Flaw(1) : series.isRejected, "\(series)")
    }
}
