import Glibc
import Promises
import Reactor
import TestSupport
import Testing

@testable import PromisesTestSupport

/// What handlers hold is released with them: once they have run or never will, and on the thread that attached them.
@Suite struct ReleaseTests {
    private let tally = Tally()

    private func attachAll(to promise: Promise<Int>) {
        for operation in 0..<10 {
            let token = tally.token()
            switch operation {
            case 0: promise.done { _ in token.use() }.ignoringErrors()
            case 1: promise.map { _ in token.use() }.ignoringErrors()
            case 2:
                promise.then { _ -> Promise<Void> in
                    token.use()
                    return .value
                }.ignoringErrors()
            case 3: promise.catch { _ in token.use() }
            case 4:
                promise.recover { _ -> Guarantee<Int> in
                    token.use()
                    return .value(0)
                }
            case 5: promise.tap { _ in token.use() }.ignoringErrors()
            case 6: promise.ensure { token.use() }.ignoringErrors()
            case 7:
                promise.ensureThen {
                    token.use()
                    return .value
                }.ignoringErrors()
            case 8: promise.catch { _ in }.finally { token.use() }
            default: promise.pipe { _ in token.use() }
            }
        }
    }

    @Test func afterFulfilling() throws {
        try inLoop { loop throws in
            let (promise, resolver) = Promise<Int>.pending()
            attachAll(to: promise)
            expectEqual(tally.alive, 10)
            resolver.fulfill(1)
            try loop.run()
            // Although the promise lives on.
            expectEqual(tally.alive, 0)
            expectEqual(promise.settledValue, 1)
        }
    }

    @Test func afterRejecting() throws {
        try inLoop { loop throws in
            let (promise, resolver) = Promise<Int>.pending()
            attachAll(to: promise)
            resolver.reject(Flaw())
            try loop.run()
            expectEqual(tally.alive, 0)
            expect(promise.isRejected)
        }
    }

    @Test func ofASettledPromise() throws {
        try inLoop { loop throws in
            attachAll(to: .value(1))
            attachAll(to: Promise(error: Flaw()))
            try loop.run()
            expectEqual(tally.alive, 0)
        }
    }

    @Test func ofAPromiseThatIsNeverSettled() throws {
        let lines = try logged {
            try inLoop { loop throws in
                attachAll(to: Promise { _ in })
                try loop.run()
                expectEqual(tally.alive, 0)
            }
        }
        expectEqual(lines.count, 1)
    }

    @Test func whenTheLoopEndsBeforeTheyRun() {
        let lines = logged {
            inLoop { _ in
                let (promise, resolver) = Promise<Int>.pending()
                attachAll(to: promise)
                resolver.fulfill(1)
                expectEqual(tally.alive, 9, "the pipe has run")
            }
        }
        expectEqual(tally.alive, 0)
        expectEqual(lines.count, 1)
    }

    @Test func whenTheLoopEndsBeforeTheirTimer() {
        _ = logged {
            inLoop { _ in attachAll(to: after(.seconds(1)).map { 1 }.asPromise()) }
        }
        expectEqual(tally.alive, 0)
    }

    @Test func valuesGoWithTheLastPromise() throws {
        try inLoop { loop throws in
            do {
                let promise = Promise.value(tally.token())
                let copy = promise.get { _ in }
                try loop.run()
                expectEqual(tally.alive, 1)
                withExtendedLifetime((promise, copy)) {}
            }
            expectEqual(tally.alive, 0)
        }
    }

    @Test func aDerivedPromiseDoesNotKeepItsSource() throws {
        try inLoop { loop throws in
            let derived = {
                let token = tally.token()
                return Promise.value(token).map { _ in 1 }
            }()
            try loop.run()
            expectEqual(tally.alive, 0)
            expectEqual(derived.settledValue, 1)
        }
    }

    @Test func aWaitingChainLivesWithoutBeingHeld() throws {
        try inLoop { loop throws in
            let (promise, resolver) = Promise<Int>.pending()
            var seen = 0
            do {
                let token = tally.token()
                promise.map { value in
                    token.use()
                    return value
                }.done { seen = $0 }.orFail()
            }
            expectEqual(tally.alive, 1)
            resolver.fulfill(1)
            try loop.run()
            expect(seen == 1 && tally.alive == 0)
        }
    }

    @Test func combinatorsReleaseTheirSources() throws {
        try inLoop { loop throws in
            let tokens = when(fulfilled: [Promise.value(tally.token()), Promise.value(tally.token())]).map(\.count)
            let winner = race(Promise.value(tally.token()), Promise.value(tally.token())).map { _ in 1 }
            let both = when(fulfilled: Promise.value(tally.token()), Guarantee.value(tally.token())).map { _, _ in 2 }
            try loop.run()
            expectEqual(tally.alive, 0)
            expect(tokens.settledValue == 2 && winner.settledValue == 1 && both.settledValue == 2)
        }
    }

    @Test func combinatorsThatHaveSettledKeepNoSource() throws {
        try inLoop { loop throws in
            let race = Promises.race(Promise.value(tally.token()), Promise.value(tally.token()))
            expectEqual(tally.alive, 1, "the winner's value")
            let (late, resolver) = Promise<Tally.Token>.pending()
            late.ignoringErrors()
            let other = { Promises.race(late, Promise.value(tally.token())) }()
            resolver.fulfill(tally.token())
            try loop.run()
            expectEqual(tally.alive, 3, "another winner's, and that of the loser, which is held here")
            let failed = when(fulfilled: [Promise.value(tally.token()), Promise(error: Flaw())])
            expectEqual(failed.flaw, Flaw())
            expectEqual(tally.alive, 3)
            withExtendedLifetime((race, other, failed, late)) {}
        }
        expectEqual(tally.alive, 0)
    }

    @Test func aLoserOfWhenDoesNotKeepTheResult() throws {
        try inLoop { _ throws in
            let (loser, resolver) = Promise<Tally.Token>.pending()
            do {
                let all = when(fulfilled: [Promise.value(tally.token()), loser, Promise(error: Flaw())])
                expectEqual(all.flaw, Flaw())
            }
            resolver.fulfill(tally.token())
            withExtendedLifetime(loser) {}
            expectEqual(tally.alive, 1)
        }
        expectEqual(tally.alive, 0)
    }

    @Test func onTheThreadThatAttached() throws {
        let tally = Tally(keepsEnders: true)
        try EventLoop.withLoop { _ throws in
            let hold = EventLoop.current.hold()
            for _ in 0..<scaled(100) {
                let (promise, resolver) = Promise<Int>.pending()
                let ended = {
                    let token = tally.token()
                    return promise.map { value in
                        token.use()
                        return value
                    }
                }()
                let thread = TestThread { resolver.fulfill(1) }
                expectEqual(try hang(ended), 1)
                thread.join()
            }
            hold.cancel()
        }
        let here = pthread_self()
        let elsewhere = tally.enders.filter { pthread_equal($0, here) == 0 }
        expect(elsewhere.isEmpty)
        expectEqual(tally.enders.count, scaled(100))
    }

    @Test func onTheThreadThatAttachedAlsoIfAbandonedElsewhere() throws {
        let tally = Tally(keepsEnders: true)
        let recorder = LogRecorder(where: { $0.description.contains("made at \(#fileID):\(#line + 5)") })
        try EventLoop.withLoop { _ throws in
            let hold = EventLoop.current.hold()
            var promise: Promise<Int>?
            let box = Shared<[Resolver<Int>]>([])
            promise = Promise { resolver in box.change { $0 = [resolver] } }
            let ended = {
                let token = tally.token()
                return promise!.map { value in
                    token.use()
                    return value
                }
            }()
            promise = nil
            TestThread.run { box.change { $0 = [] } }
            expect(ended, failsWith: PromiseError.abandoned)
            hold.cancel()
        }
        recorder.stop()
        expectEqual(recorder.lines.count, 1)
        expectEqual(tally.enders.count, 1)
        expect(pthread_equal(tally.enders[0], pthread_self()) != 0)
    }
}
