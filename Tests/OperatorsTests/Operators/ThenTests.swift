import Promises
import Reactor
import TestSupport
import Testing

@testable import PromisesTestSupport

@Suite struct ThenTests {
    @Test func settlesAsThePromiseThatTheHandlerReturns() throws {
        try inLoop { loop throws in
            let (inner, resolver) = Promise<String>.pending()
            var seen = 0
            let outer = Promise.value(3).then { value -> Promise<String> in
                seen = value
                return inner
            }
            try loop.run()
            expectEqual(seen, 3)
            expect(outer.isPending)
            resolver.fulfill("a")
            expect(outer, gives: "a")
        }
    }

    @Test func returningASettledPromise() throws {
        try inLoop { _ throws in
            expect(Promise.value(3).then { Promise.value($0 + 1) }, gives: 4)
            let failed = Promise.value(3).then { _ in Promise<Int>(error: Flaw(1)) }
            expect(failed, failsWith: Flaw(1))
        }
    }

    @Test func returningAGuarantee() throws {
        try inLoop { _ throws in
            expect(Promise.value(3).then { Guarantee.value($0 * 2) }, gives: 6)
            expect(Promise.value(3).then { value in after(.seconds(1)).map { value } }, gives: 3)
        }
    }

    @Test func aThrowRejects() throws {
        try inLoop { _ throws in
            let promise = Promise.value(3).then { _ -> Promise<Int> in throw Flaw(1) }
            expect(promise, failsWith: Flaw(1))
        }
    }

    @Test func aRejectionPassesTheHandlerBy() throws {
        try inLoop { _ throws in
            var ran = false
            let promise = Promise<Int>(error: Flaw(1)).then { _ -> Promise<Int> in
                ran = true
                return .value(1)
            }
            expect(promise, failsWith: Flaw(1))
            expect(!ran)
        }
    }

    @Test func theReturnedPromisesRejectionPassesOn() throws {
        try inLoop { loop throws in
            let (inner, resolver) = Promise<Int>.pending()
            let outer = Promise.value(()).then { inner }
            try loop.run()
            resolver.reject(Flaw(2))
            expect(outer, failsWith: Flaw(2))
        }
    }

    @Test func eachHandlerOfOnePromiseHasItsOwnResult() throws {
        try inLoop { loop throws in
            let (promise, resolver) = Promise<Int>.pending()
            let doubled = promise.then { Promise.value($0 * 2) }
            let failed = promise.then { _ in Promise<Int>(error: Flaw(3)) }
            let text = promise.then { Promise.value("\($0)") }
            resolver.fulfill(4)
            expect(doubled, gives: 8)
            expect(failed, failsWith: Flaw(3))
            expect(text, gives: "4")
        }
    }

    @Test func stepsRunOneAfterTheOther() throws {
        try inLoop { loop throws in
            var steps: [Int] = []
            func step(_ number: Int) -> Guarantee<Void> { after(.seconds(1)).done { steps.append(number) } }
            let all = step(1).then { step(2) }.then { step(3) }
            hang(all)
            expectEqual(steps, [1, 2, 3])
            expectEqual(loop.now.nanoseconds, 3_000_000_000)
        }
    }

    @Test func ofAGuarantee() throws {
        inLoop { _ in
            let (inner, resolve) = Guarantee<String>.pending()
            let outer = Guarantee.value(3).then { _ in inner }
            EventLoop.current.enqueue { resolve("a") }
            expect(outer, gives: "a")
        }
    }

    @Test func ofAGuaranteeMayThrowAndThenIsAPromise() throws {
        try inLoop { _ throws in
            let promise = Guarantee.value(3).then { value -> Promise<Int> in
                if value == 3 { throw Flaw(1) }
                return .value(value)
            }
            expect(promise, failsWith: Flaw(1))
        }
    }

    @Test func returningThePreviousPromise() throws {
        try inLoop { loop throws in
            let (previous, resolver) = Promise<Int>.pending()
            let next = previous.then { _ in previous }
            let again = next.then { _ in previous }
            resolver.fulfill(7)
            expect(next, gives: 7)
            expect(again, gives: 7)
        }
    }
}
