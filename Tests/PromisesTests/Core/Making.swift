import Promises
import Reactor
import Testing

@Suite struct Making {
    @Test func bodyRunsAtOnce() {
        var ran = false
        let promise = Promise<Int> { resolver in
            ran = true
            resolver.fulfill(3)
        }
        #expect(ran)
        #expect(promise.value == 3)
    }

    @Test func bodyThatThrowsRejects() {
        let promise = Promise<Int> { _ in throw Flaw(1) }
        #expect(promise.flaw == Flaw(1))
    }

    @Test func throwAfterSettlingIsIgnored() {
        let promise = Promise<Int> { resolver in
            resolver.fulfill(3)
            throw Flaw(1)
        }
        #expect(promise.value == 3)
    }

    @Test func bodyMaySettleLater() throws {
        try inLoop { loop throws in
            let promise = Promise<Int> { resolver in
                loop.enqueue { resolver.fulfill(3) }
            }
            #expect(promise.isPending)
            #expect(try hang(promise) == 3)
        }
    }

    @Test func pendingGivesPromiseAndResolver() {
        let pair = Promise<String>.pending()
        #expect(pair.promise.isPending)
        pair.resolver.fulfill("a")
        #expect(pair.promise.value == "a")
    }

    @Test func bornSettled() {
        #expect(Promise.value(3).value == 3)
        #expect(Promise<Int>(error: Flaw(2)).flaw == Flaw(2))
    }

    @Test func voidHasManySpellings() {
        let spellings: [Promise<Void>] = [Promise(), .value, .value(()), Promise.value(Void()), Promise<Void>.value]
        for promise in spellings { #expect(promise.isFulfilled) }
        let guarantees: [Guarantee<Void>] = [Guarantee(), .value, .value(()), Guarantee<Void>.value]
        for guarantee in guarantees { #expect(guarantee.isFulfilled) }
    }

    @Test func fromAGuarantee() {
        let (guarantee, resolve) = Guarantee<Int>.pending()
        let promise = Promise(guarantee)
        #expect(promise.isPending)
        resolve(3)
        #expect(promise.value == 3)
        #expect(guarantee.asPromise().value == 3)
    }

    @Test func anErrorMayBeAValue() {
        let promise: Promise<any Error> = .value(Flaw(1))
        #expect(promise.isFulfilled)
        #expect(promise.value as? Flaw == Flaw(1))
    }

    @Test func guaranteeOfABody() {
        let now = Guarantee<Int> { seal in seal(3) }
        #expect(now.value == 3)
        var later: ((Int) -> Void)?
        let guarantee = Guarantee<Int> { seal in later = seal }
        #expect(guarantee.isPending)
        later?(4)
        later?(5)
        #expect(guarantee.value == 4)
        #expect(Guarantee.value(6).value == 6)
    }
}

@Suite struct Resolving {
    private func outcome<T>(_ settle: (Resolver<T>) -> Void) -> Result<T, any Error>? {
        let (promise, resolver) = Promise<T>.pending()
        settle(resolver)
        return promise.result
    }

    @Test func theFirstSettlementCounts() {
        #expect(throws: Flaw(1)) {
            try outcome { (resolver: Resolver<Int>) in
                resolver.reject(Flaw(1))
                resolver.fulfill(2)
                resolver.reject(Flaw(3))
            }!.get()
        }
        let value = outcome { (resolver: Resolver<Int>) in
            resolver.fulfill(1)
            resolver.fulfill(2)
            resolver.reject(Flaw(3))
        }
        #expect(try! value!.get() == 1)
    }

    @Test func resultsOfAnyErrorType() {
        #expect(try! outcome { $0.resolve(Result<Int, Flaw>.success(1)) }!.get() == 1)
        #expect(throws: Flaw(2)) { try outcome { $0.resolve(Result<Int, Flaw>.failure(Flaw(2))) }!.get() }
        #expect(throws: Flaw(2)) { try outcome { $0.resolve(Result<Int, any Error>.failure(Flaw(2))) }!.get() }
    }

    @Test func callbackPairs() throws {
        #expect(try outcome { $0.resolve(1, nil) }!.get() == 1)
        #expect(throws: Flaw(2)) { try outcome { $0.resolve(1, Flaw(2)) }!.get() }
        #expect(throws: Flaw(2)) { try outcome { (resolver: Resolver<Int>) in resolver.resolve(nil, Flaw(2)) }!.get() }
        #expect(throws: PromiseError.invalidCallingConvention) {
            try outcome { (resolver: Resolver<Int>) in resolver.resolve(nil, nil) }!.get()
        }
    }

    @Test func voidCallbacks() throws {
        try outcome { (resolver: Resolver<Void>) in resolver.fulfill() }!.get()
        try outcome { (resolver: Resolver<Void>) in resolver.resolve(nil) }!.get()
        #expect(throws: Flaw(1)) { try outcome { (resolver: Resolver<Void>) in resolver.resolve(Flaw(1)) }!.get() }
    }

    @Test func methodsAreFunctions() {
        let (promise, resolver) = Promise<Int>.pending()
        let callback: (Int) -> Void = resolver.fulfill
        callback(3)
        #expect(promise.value == 3)
        let (failing, failer) = Promise<Int>.pending()
        let refuse: (any Error) -> Void = failer.reject
        refuse(Flaw(4))
        #expect(failing.flaw == Flaw(4))
    }
}
