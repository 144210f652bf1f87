@testable import PromisesTestSupport

struct PromiseTests {
    @Test func bodyRunsAtOnce() {
        var ran = false
        let promise = Promise<Int> { resolver in
            ran = true
            resolver.fulfill(3)
        }
        expect(ran)
        expectEqual(promise.settledValue, 3)
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
}

struct ResolverTests {
    @Test func whatComesTooLateForACancelledPromiseIsTheCallersStill() {
        let (promise, resolver) = Promise<Int>.pending()
        let end = promise.map { $0 + 1 }
        end.cancel()
        expect(!resolver.isPending)
        expectEqual(resolver.fulfill(1), false)
        expect(end, failsWith: PromiseError.cancelled)
    }
}
