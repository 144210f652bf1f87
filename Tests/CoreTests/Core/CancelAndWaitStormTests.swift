@testable import PromisesTestSupport

/// Trees of operators and combinators over operations that take time to end, cancelled at any moment: when
/// `cancelAndWait` is fulfilled, no clean-up is in progress, and each has run at most once.
struct CancelAndWaitStormTests {
    /// The clean-ups that have begun and ended, by number.
    private final class Account {
        private(set) var begun: [Int: Int] = [:]
        private(set) var ended: [Int: Int] = [:]
        private var last = 0
        var underWay: Int { begun.values.reduce(0, +) - ended.values.reduce(0, +) }

        func cleanUpAtOnce() -> () -> Void {
            last += 1
            let number = last
            return { [self] in
                begun[number, default: 0] += 1
                ended[number, default: 0] += 1
            }
        }

        func cleanUp(_ time: Duration) -> () -> Guarantee<Void> {
            last += 1
            let number = last
            return { [self] in
                begun[number, default: 0] += 1
                return after(time).map { [self] in ended[number, default: 0] += 1 }
            }
        }
    }

    private struct Tree {
        let account: Account
        /// A won race does not wait for its losers, nor a rejected `when` for its other inputs. So operations either
        /// end by themselves, or race.
        let endsByItself: Bool
        var dice: SplitMix64
        var time: Duration { mutating get { .milliseconds(dice.below(5)) } }

        mutating func work() -> Promise<Int> {
            switch dice.below(5) {
            case 0 where endsByItself: return after(.milliseconds(dice.below(20))).map { 1 }.asPromise()
            case 1 where endsByItself: return .value(1)
            case 2: return endless().ensureThen(account.cleanUp(time))
            case 3:
                let (promise, resolver) = Promise<Int>.pending()
                for _ in 0...dice.below(2) {
                    let cleanUp = account.cleanUp(time)
                    resolver.onCancelThen { cleanUp().map { withExtendedLifetime(resolver) {} } }
                }
                if endsByItself { after(.milliseconds(dice.below(20))).done { resolver.fulfill(1) } }
                return promise
            default: return endless()
            }
        }

        mutating func grow(_ depth: Int) -> Promise<Int> {
            if depth == 0 { return work() }
            let first = grow(depth - 1)
            switch dice.below(13) {
            case 0: return first.ensureThen(account.cleanUp(time))
            case 1: return first.map { $0 }
            // The returned promise is made there: one made before, and not returned, continues by itself.
            case 2:
                var later = self
                return first.then { _ in later.grow(depth - 1) }
            case 3: return firstly { first }
            case 4: return when(fulfilled: first, grow(depth - 1)).map { $0.0 }
            case 5: return when(fulfilled: [first, grow(depth - 1)], concurrently: 2) { $0 }.map { $0[0] }
            case 6: return when(resolved: [first]).map { _ in 1 }.asPromise()
            case 7: return first.recover(policy: .allErrors) { _ in Promise.value(1) }
            case 8:
                var inside = self
                return first.then { _ in Limiter(1).run { inside.work() } }
            case 9: return first.tap { _ in }
            case 10 where !endsByItself: return race(first, grow(depth - 1))
            case 11 where !endsByItself: return race(fulfilled: [first, grow(depth - 1)])
            case 12 where !endsByItself: return first.timeout(.seconds(9))
            default:
                return first.ensure(account.cleanUpAtOnce())
            }
        }
    }

    @Test(arguments: 0..<10) func nothingIsUnderWayAfterwards(seed: Int) throws {
        for round in 0..<(scaled(1_000)) {
            try inLoop { loop throws in
                let account = Account()
                var dice = SplitMix64(UInt64(seed * 1_000_000 + round))
                var tree = Tree(account: account, endsByItself: seed % 2 == 0, dice: dice)
                let work = tree.grow(1 + dice.below(4))
                work.ignoringErrors()
                if dice.once(in: 3) { try loop.turn(.poll) }
                var ends = 0
                let isTwice = dice.once(in: 3)
                loop.schedule(after: .milliseconds(dice.below(25))) {
                    for _ in 0...(isTwice ? 1 : 0) {
                        work.cancelAndWait().done {
                            ends += 1
                            expect(account.underWay == 0 && !work.isPending)
                        }
                    }
                }
                try loop.run()
                expect(ends == (isTwice ? 2 : 1) && account.begun == account.ended)
                expect(account.begun.values.allSatisfy { $0 == 1 })
            }
        }
    }
}
