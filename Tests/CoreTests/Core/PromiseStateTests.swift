@testable import PromisesTestSupport

struct PromiseStateTests {
    @Test func pending() {
        let (promise, resolver) = Promise<Int>.pending()
        expect(promise.result == nil && promise.settledValue == nil && promise.error == nil)
        expect(promise.isPending && !promise.isResolved && !promise.isFulfilled && !promise.isRejected)
        resolver.fulfill(1)
    }

    @Test func guarantee() {
        let (guarantee, resolve) = Guarantee<Int>.pending()
        expect(guarantee.isPending && guarantee.result == nil && !guarantee.isRejected)
        resolve(2)
        resolve(3)
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

    @Test func voidHasManySpellings() {
        let spellings: [Promise<Void>] = [Promise(), .value, .value(()), Promise.value(Void()), Promise<Void>.value]
        for promise in spellings { expect(promise.isFulfilled) }
        let guarantees: [Guarantee<Void>] = [Guarantee(), .value, .value(()), Guarantee<Void>.value]
        for guarantee in guarantees { expect(guarantee.isFulfilled) }
    }

    @Test func fromAGuarantee() {
        let (guarantee, resolve) = Guarantee<Int>.pending()
        let promise = Promise(guarantee)
        expect(promise.isPending)
        resolve(3)
        expectEqual(promise.settledValue, 3)
        expectEqual(guarantee.asPromise().settledValue, 3)
    }

    @Test func guaranteeOfABody() {
        let now = Guarantee<Int> { seal in seal(3) }
        expectEqual(now.settledValue, 3)
        var later: ((Int) -> Void)?
        let guarantee = Guarantee<Int> { seal in later = seal }
        expect(guarantee.isPending)
        later?(4)
        later?(5)
        expectEqual(guarantee.settledValue, 4)
        expectEqual(Guarantee.value(6).settledValue, 6)
    }

    @Test func whatComesTooLateForACancelledPromiseIsTheCallersStill() {
        let (promise, resolver) = Promise<Int>.pending()
        let end = promise.map { $0 + 1 }
        end.cancel()
        expect(!resolver.isPending)
        expectEqual(resolver.fulfill(1), false)
        expect(end, failsWith: PromiseError.cancelled)
    }
}
