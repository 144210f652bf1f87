import Promises
import Reactor
import TestSupport
import Testing

@testable import PromisesTestSupport

@Suite struct PromiseTests {
    @Test func bodyRunsAtOnce() {
        var ran = false
        let promise = Promise<Int> { resolver in
            ran = true
            resolver.fulfill(3)
        }
        expect(ran)
        expectEqual(promise.settledValue, 3)
    }

    @Test func bodyThatThrowsRejects() {
        let promise = Promise<Int> { _ in throw Flaw(1) }
        expectEqual(promise.flaw, Flaw(1))
    }

    @Test func throwAfterSettlingIsIgnored() {
        let promise = Promise<Int> { resolver in
            resolver.fulfill(3)
            throw Flaw(1)
        }
        expectEqual(promise.settledValue, 3)
    }

    @Test func bodyMaySettleLater() throws {
        try inLoop { loop throws in
            let promise = Promise<Int> { resolver in
                loop.enqueue { resolver.fulfill(3) }
            }
            expect(promise.isPending)
            expect(promise, gives: 3)
        }
    }

    @Test func pendingGivesPromiseAndResolver() {
        let pair = Promise<String>.pending()
        expect(pair.promise.isPending)
        pair.resolver.fulfill("a")
        expectEqual(pair.promise.settledValue, "a")
    }

    @Test func bornSettled() {
        expectEqual(Promise.value(3).settledValue, 3)
        expectEqual(Promise<Int>(error: Flaw(2)).flaw, Flaw(2))
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

    @Test func anErrorMayBeAValue() {
        let promise: Promise<any Error> = .value(Flaw(1))
        expect(promise.isFulfilled)
        expect(promise.settledValue as? Flaw == Flaw(1))
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
}

@Suite struct ResolverTests {
    private func promise<T>(_ settle: (Resolver<T>) -> Void) -> Promise<T> {
        let (promise, resolver) = Promise<T>.pending()
        settle(resolver)
        return promise
    }

    @Test func theFirstSettlementCounts() {
        let rejectedFirst = promise { (resolver: Resolver<Int>) in
            resolver.reject(Flaw(1))
            resolver.fulfill(2)
            resolver.reject(Flaw(3))
        }
        expect(rejectedFirst, failsWith: Flaw(1))
        let fulfilledFirst = promise { (resolver: Resolver<Int>) in
            resolver.fulfill(1)
            resolver.fulfill(2)
            resolver.reject(Flaw(3))
        }
        expect(fulfilledFirst, gives: 1)
    }

    @Test func aSettlementTellsWhetherItCounted() {
        let (promise, resolver) = Promise<Int>.pending()
        expect(resolver.isPending)
        expect(resolver.fulfill(1))
        expect(!resolver.isPending)
        expectEqual(resolver.fulfill(2), false)
        expectEqual(resolver.reject(Flaw(3)), false)
        expect(promise, gives: 1)
        let (failing, failer) = Promise<Void>.pending()
        expect(failer.reject(Flaw(4)))
        expectEqual(failer.fulfill(), false)
        expect(failing, failsWith: Flaw(4))
    }

    @Test func whatComesTooLateForACancelledPromiseIsTheCallersStill() {
        let (promise, resolver) = Promise<Int>.pending()
        let end = promise.map { $0 + 1 }
        end.cancel()
        expect(!resolver.isPending)
        expectEqual(resolver.fulfill(1), false)
        expect(end, failsWith: PromiseError.cancelled)
    }

    @Test func resultsOfAnyErrorType() {
        expect(promise { $0.resolve(Result<Int, Flaw>.success(1)) }, gives: 1)
        expect(promise { $0.resolve(Result<Int, Flaw>.failure(Flaw(2))) }, failsWith: Flaw(2))
        expect(promise { $0.resolve(Result<Int, any Error>.failure(Flaw(2))) }, failsWith: Flaw(2))
    }

    @Test func callbackPairs() {
        func settled(_ value: Int?, _ error: (any Error)?) -> Promise<Int> { promise { $0.resolve(value, error) } }
        expect(settled(1, nil), gives: 1)
        expect(settled(1, Flaw(2)), failsWith: Flaw(2))
        expect(settled(nil, Flaw(2)), failsWith: Flaw(2))
        expect(settled(nil, nil), failsWith: PromiseError.invalidCallingConvention)
    }

    @Test func voidCallbacks() throws {
        func settled(_ error: (any Error)?) -> Promise<Void> { promise { $0.resolve(error) } }
        expect(settled(nil).isFulfilled)
        expect(settled(Flaw(1)), failsWith: Flaw(1))
        let plain = promise { (resolver: Resolver<Void>) in resolver.fulfill() }
        expect(plain.isFulfilled)
    }

    @Test func methodsAreFunctions() {
        let (promise, resolver) = Promise<Int>.pending()
        let callback: (Int) -> Void = resolver.fulfill
        callback(3)
        expectEqual(promise.settledValue, 3)
        let (failing, failer) = Promise<Int>.pending()
        let refuse: (any Error) -> Void = failer.reject
        refuse(Flaw(4))
        expectEqual(failing.flaw, Flaw(4))
    }
}
