@testable import PromisesTestSupport

struct PromiseStateTests {
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
