import Promises
import Reactor
import TestSupport
import Testing

@testable import PromisesTestSupport

@Suite struct GetThenTests {
    @Test func theValueWaitsForTheSideEffect() throws {
        try inLoop { loop throws in
            let (inner, resolver) = Promise<String>.pending()
            var seen = 0
            let promise = Promise.value(3).getThen { value in
                seen = value
                return inner
            }
            try loop.run()
            #expect(seen == 3 && promise.isPending)
            resolver.fulfill("dropped")
            expect(promise, gives: 3)
        }
    }

    @Test func anySideEffectWillDo() {
        inLoop { loop in
            expect(Promise.value(1).getThen { _ in Promise.value("settled") }, gives: 1)
            expect(Promise.value(2).getThen { _ in after(.seconds(1)) }, gives: 2)
            expect(Guarantee.value(3).getThen { _ in Promise<Void>.value }, gives: 3)
            #expect(loop.now.nanoseconds == 1_000_000_000)
        }
    }

    @Test func itsRejectionRejects() throws {
        try inLoop { loop throws in
            expect(Promise.value(1).getThen { _ in Promise<Void>(error: Flaw(1)) }, failsWith: Flaw(1))
            let (inner, resolver) = Promise<Void>.pending()
            let promise = Promise.value(1).getThen { _ in inner }
            try loop.run()
            resolver.reject(Flaw(2))
            expect(promise, failsWith: Flaw(2))
            expect(Promise.value(1).getThen { _ throws -> Promise<Void> in throw Flaw(3) }, failsWith: Flaw(3))
        }
    }

    @Test func aRejectionPassesItBy() {
        inLoop { _ in
            var calls = 0
            let promise = Promise<Int>(error: Flaw(1)).getThen { _ -> Promise<Void> in
                calls += 1
                return .value
            }
            expect(promise, failsWith: Flaw(1))
            #expect(calls == 0)
        }
    }

    @Test func aGuaranteeStaysOne() throws {
        try inLoop { loop throws in
            var seen: [Int] = []
            let promise: Guarantee<Int> = Guarantee.value(3).getThen { value in
                after(.seconds(value)).done { seen.append(value) }
            }
            let settled: Guarantee<Int> = Guarantee.value(4).getThen { _ in Guarantee.value("") }
            #expect(hang(promise) == 3 && hang(settled) == 4 && seen == [3])
            // Its result may be dropped.
            Guarantee.value(5).getThen { value in Guarantee.value(seen.append(value)) }
            try loop.run()
            #expect(seen == [3, 5])
        }
    }

    @Test(arguments: [false, true]) func whatReturnsItselfIsRejected(isLate: Bool) throws {
        try inLoop { loop throws in
            var promise: Promise<Int>?
            let source = isLate ? after(.seconds(1)).map { 1 }.asPromise() : .value(1)
            promise = source.getThen { _ in promise! }
            expect(promise!, failsWith: PromiseError.returnedSelf)
        }
    }

    @Test func aGuaranteeThatReturnsItselfTraps() async {
        await #expect(processExitsWith: .failure) {
            inLoop { _ in
                var guarantee: Guarantee<Int>?
                guarantee = Guarantee.value(1).getThen { _ in guarantee! }
                _ = try? EventLoop.current.run()
            }
        }
    }

    @Test func anAbandonedSideEffectRejects() {
        let lines = logged {
            inLoop { _ in
                expect(Promise.value(1).getThen { _ in Promise<Void> { _ in } }, failsWith: PromiseError.abandoned)
            }
        }
        #expect(lines.count == 1)
    }

    @Test func whatItWaitsForIsCancelledWithIt() throws {
        try inLoop { loop throws in
            var stops = 0
            let promise = Promise.value(1).getThen { _ in
                Promise<Void> { resolver in
                    resolver.onCancel { stops += 1 }
                    loop.schedule(after: .seconds(1)) { resolver.fulfill() }
                }.map { "mapped" }
            }
            let end = promise.map { $0 }
            try loop.turn(.poll)
            end.cancel()
            #expect(end.isCancelled && promise.isCancelled)
            try loop.run()
            #expect(stops == 1)
        }
    }

    @Test func aGuaranteeIsCancelledWithWhatItWaitsFor() throws {
        try inLoop { loop throws in
            let guarantee = Guarantee.value(1).getThen { _ in after(.seconds(1)) }
            try loop.turn(.poll)
            #expect(loop.isAlive)
            guarantee.cancel()
            #expect(!loop.isAlive && guarantee.settledValue == nil)
        }
    }

    @Test func whatItReturnsThatWasCancelledMeanwhileIsCancelledToo() throws {
        try inLoop { loop throws in
            var promise: Promise<Int>?
            promise = Promise.value(1).getThen { _ in
                promise?.cancel()
                return after(.seconds(1))
            }
            try loop.turn(.poll)
            #expect(promise?.isCancelled == true && !loop.isAlive)
        }
    }

    @Test(arguments: [false, true]) func anErrorOfItsSideEffectIsHandled(isLate: Bool) throws {
        let lines = try logged {
            try inLoop { loop throws in
                let start = isLate ? after(.seconds(1)).asPromise() : .value
                Promise.value(1).getThen { _ -> Promise<Void> in
                    isLate ? start.done { throw Flaw(1) } : Promise(error: Flaw(1))
                }.ignoringErrors()
                try loop.run()
            }
        }
        #expect(lines == [])
    }

    @Test func whatOthersWaitForGoesOn() throws {
        try inLoop { loop throws in
            let effect = after(.seconds(1)).map { "effect" }
            let other = effect.map { $0 }
            let promise = Promise.value(1).getThen { _ in effect }
            try loop.turn(.poll)
            promise.cancel()
            expect(other, gives: "effect")
            #expect(promise.isCancelled)
        }
    }

    /// A million rounds of it are one level: none of them is kept for those that follow.
    @Test func recursionKeepsNothing() {
        let tally = Tally()
        inLoop { _ in
            func round(_ left: Int) -> Promise<Int> {
                let token = tally.token()
                let effect = left % 2 == 0 ? after(.zero).asPromise() : .value
                return Promise.value(token).getThen { _ in effect }.then { _ -> Promise<Int> in
                    left == 0 ? .value(0) : round(left - 1)
                }
            }
            expect(round(scaled(100_000)), gives: 0)
        }
        #expect(tally.alive == 0 && tally.peak < 20)
    }
}
