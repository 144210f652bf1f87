import Promises
import Reactor
import TestSupport
import Testing

@testable import PromisesTestSupport

@Suite struct PromiseStateTests {
    @Test func pending() {
        let (promise, resolver) = Promise<Int>.pending()
        expect(promise.result == nil && promise.settledValue == nil && promise.error == nil)
        expect(promise.isPending && !promise.isResolved && !promise.isFulfilled && !promise.isRejected)
        resolver.fulfill(1)
    }

    @Test func fulfilled() {
        let promise = Promise.value(1)
        expect(promise.settledValue == 1 && promise.error == nil)
        expect(!promise.isPending && promise.isResolved && promise.isFulfilled && !promise.isRejected)
    }

    @Test func rejected() {
        let promise = Promise<Int>(error: Flaw(1))
        expect(promise.settledValue == nil && promise.flaw == Flaw(1))
        expect(!promise.isPending && promise.isResolved && !promise.isFulfilled && promise.isRejected)
    }

    @Test func guarantee() {
        let (guarantee, resolve) = Guarantee<Int>.pending()
        expect(guarantee.isPending && guarantee.result == nil && !guarantee.isRejected)
        resolve(2)
        expect(guarantee.isFulfilled && guarantee.settledValue == 2 && guarantee.error == nil)
    }

    @Test func aNilValueIsAValue() {
        let promise = Promise<Int?>.value(nil)
        expect(promise.isFulfilled)
        expectEqual(promise.settledValue, .some(nil))
    }

    @Test func settlingChangesNothingTwice() throws {
        try inLoop { loop throws in
            let (promise, resolver) = Promise<Int>.pending()
            var calls = 0
            promise.done { _ in calls += 1 }.orFail()
            resolver.fulfill(1)
            resolver.fulfill(2)
            try loop.run()
            resolver.reject(Flaw())
            try loop.run()
            expectEqual(calls, 1)
            expectEqual(promise.settledValue, 1)
        }
    }

    @Test func copiesAreTheSamePromise() {
        let (promise, resolver) = Promise<Int>.pending()
        let copy = promise
        resolver.fulfill(1)
        expectEqual(copy.settledValue, 1)
    }

    @Test func aDerivedPromiseIsPendingUntilItsHandlerRan() throws {
        try inLoop { loop throws in
            let derived = Promise.value(1).map { $0 + 1 }
            expect(derived.isPending)
            try loop.turn(.poll)
            expectEqual(derived.settledValue, 2)
        }
    }

    @Test func aFollowerShowsTheStateOfWhatItFollows() throws {
        try inLoop { loop throws in
            let (inner, resolver) = Promise<Int>.pending()
            let outer = Promise.value(()).then { inner }
            try loop.run()
            expect(outer.isPending && inner.isPending)
            resolver.fulfill(5)
            expectEqual(inner.settledValue, 5)
            try loop.run()
            expectEqual(outer.settledValue, 5)
        }
    }

    @Test func linkedPromisesSettleTogether() throws {
        try inLoop { loop throws in
            let (source, resolver) = Promise<Int>.pending()
            let inner = source.map { $0 + 1 }
            let outer = Promise.value(()).then { inner }
            try loop.run()
            var seen: [Int?] = []
            outer.done { _ in seen += [inner.settledValue, outer.settledValue] }.orFail()
            resolver.fulfill(5)
            try loop.run()
            expectEqual(seen, [6, 6])
        }
    }

    @Test func descriptions() {
        let (promise, resolver) = Promise<Int>.pending()
        expectEqual("\(promise)", "Promise(…Int)")
        expectEqual(String(reflecting: promise), "Promise<Int>.pending")
        resolver.fulfill(3)
        expectEqual("\(promise)", "Promise(3)")
        expectEqual(String(reflecting: Promise.value("a")), "Promise<String>.fulfilled(\"a\")")
        let rejected = Promise<Int>(error: PromiseError.timedOut)
        expectEqual("\(rejected)", "Promise(the time limit expired)")
        expect(String(reflecting: rejected).hasPrefix("Promise<Int>.rejected("))
        // Printing it does not handle its error; this does.
        expect(rejected.isRejected && rejected.error != nil)
        let (guarantee, resolve) = Guarantee<Int>.pending()
        expectEqual("\(guarantee)", "Guarantee(…Int)")
        resolve(4)
        expectEqual("\(guarantee)", "Guarantee(4)")
    }
}
