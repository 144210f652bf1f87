@testable import PromisesTestSupport

/// When the closure of an operator is released, and on which thread, whichever branch was taken.
struct ClosureReleaseTests {
    enum Outcome: CaseIterable {
        case fulfilled, rejected, abandoned
    }

    @Test("when its handler has run or been passed by, before the next one runs", arguments: ChainedOperator.allCases)
    func atOnce(operation: ChainedOperator) throws {
        for outcome in Outcome.allCases {
            let lines = try loggedInLoop { loop throws in
                let tally = Tally()
                let (promise, resolver) = pair()
                let derived = operation.attach(to: promise, tally.token())
                var leftForTheNext: [Int] = []
                derived.ensure { leftForTheNext.append(tally.alive) }.ignoringErrors()
                try loop.run()
                expectEqual(tally.alive, 1)
                settle(resolver, outcome)
                // Both the settled promise and the derived one stay alive.
                try loop.run()
                expectEqual(leftForTheNext, [0], "\(outcome)")
                expectEqual(tally.alive, 0, "\(outcome)")
                withExtendedLifetime((promise, derived)) {}
            }
            expectEqual(lines.count, (outcome == .abandoned ? 1 : 0))
        }
    }

    /// The other ends of the promise that it waits for; DeepShapeTests has those of its loop.
    enum End: CaseIterable { case fulfilledBefore, rejectedBefore, cancelledAbove, cancelledBelow }

    @Test("at each end", .inLoop, arguments: ChainedOperator.allCases, End.allCases)
    func atEachEnd(operation: ChainedOperator, end: End) throws {
        let tally = Tally()
        let (promise, resolver) = Promise<Int>.pending()
        func attach(to promise: Promise<Int>) {
            for _ in 0..<3 { operation.attach(to: promise, tally.token()).ignoringErrors() }
        }
        let lines = try logged {
            switch end {
            case .fulfilledBefore: attach(to: .value(1))
            case .rejectedBefore: attach(to: Promise(error: Flaw(1)))
            case .cancelledAbove:
                attach(to: promise)
                promise.cancel()
            case .cancelledBelow:
                let end = (0..<3).reduce(promise) { last, _ in operation.attach(to: last, tally.token()) }
                end.cancel()
                if [.map, .then, .recover, .compactMap].contains(operation) { expect(promise.isCancelled) }
                try EventLoop.current.run()
                // A `catch` listens on.
                resolver.fulfill(1)
            }
            try EventLoop.current.run()
        }
        expectEqual(lines, [])
        // Although the promise stays alive.
        expectEqual(tally.alive, 0)
        withExtendedLifetime(promise) {}
        resolver.fulfill(1)
    }

    @Test(
        "while the promise that it returned is still pending", .inLoop,
        arguments: [ChainedOperator.then, .recover, .ensureThen])
    func beforeWhatItReturnedSettles(operation: ChainedOperator) throws {
        let loop = EventLoop.current
        let tally = Tally()
        let (promise, resolver) = pair()
        let (inner, innerResolver) = Promise<Int>.pending()
        func attach(_ token: Tally.Token) -> Promise<Int> {
            switch operation {
            case .then: promise.then { _ in token.with(inner) }
            case .recover: promise.recover { _ in token.with(inner) }
            default: promise.ensureThen { token.with(inner.asVoid().recover { _ in .value }) }
            }
        }
        let derived = attach(tally.token())
        settle(resolver, operation == .recover ? .rejected : .fulfilled)
        try loop.run()
        expect(derived.isPending)
        expectEqual(tally.alive, 0)
        innerResolver.fulfill(2)
        try loop.run()
        expect(derived.isFulfilled)
    }

    /// Whoever settles the source, and releases the last promise of the chain.
    @Test("on the thread that attached", arguments: ChainedOperator.allCases, [false, true])
    func onItsThread(operation: ChainedOperator, isReleasedElsewhere: Bool) throws {
        for outcome in Outcome.allCases {
            let tally = Tally(keepsEnders: true)
            try inLoop { loop throws in
                let box = Shared<Promise<Int>?>(nil)
                let resolver = {
                    let (promise, resolver) = pair()
                    // After others, which pass the rejection on: at every place of a chain.
                    let end = (0..<3).reduce(promise) { last, _ in operation.attach(to: last, tally.token()) }
                    end.ignoringErrors()
                    if isReleasedElsewhere { box.value = end }
                    return resolver
                }()
                TestThread.run { box.value = nil }
                expectEqual(tally.alive, 3)
                TestThread.run { _ = logged { settle(resolver, outcome) } }
                try loop.run()
            }
            let here = pthread_self()
            let strangers = tally.enders.filter { pthread_equal($0, here) == 0 }.count
            expect(tally.enders.count == 3 && strangers == 0, "\(outcome)")
        }
    }

    private func pair() -> (Promise<Int>, Shared<Resolver<Int>?>) {
        let (promise, resolver) = Promise<Int>.pending()
        return (promise, Shared(resolver))
    }
}

private func settle(_ resolver: Shared<Resolver<Int>?>, _ outcome: ClosureReleaseTests.Outcome) {
    switch outcome {
    case .fulfilled: resolver.value?.fulfill(1)
    case .rejected: resolver.value?.reject(Flaw(1))
    case .abandoned: break
    }
    resolver.value = nil
}

/// The operators, by their possible results.
enum ChainedOperator: CaseIterable {
    case map, then, done, get, tap, ensure, ensureThen, recover, recoverToAGuarantee, `catch`, finally
    case compactMap, tapError, catchOfAType, catchOfAValue, recoverOfAType, recoverOfAValue, thenMap

    /// Attaches a closure that holds `token`.
    func attach(to promise: Promise<Int>, _ token: Tally.Token) -> Promise<Int> {
        switch self {
        case .map: return promise.map { token.with($0) }
        case .then: return promise.then { Promise.value(token.with($0)) }
        case .done: return promise.done { _ in token.use() }.map { 1 }
        case .get: return promise.get { _ in token.use() }
        case .tap: return promise.tap { _ in token.use() }
        case .ensure: return promise.ensure { token.use() }
        case .ensureThen: return promise.ensureThen { token.with(.value) }
        case .recover: return promise.recover { Promise<Int>(error: token.with($0)) }
        case .recoverToAGuarantee:
            return promise.recover { _ -> Guarantee<Int> in token.with(.value(1)) }.asPromise()
        case .catch:
            promise.catch { _ in token.use() }
            return promise.tap { _ in }
        case .finally:
            promise.catch { _ in }.finally { token.use() }
            return promise.tap { _ in }.tap { _ in }.tap { _ in }
        case .compactMap: return promise.compactMap { token.with($0) }
        case .tapError: return promise.tapError { _ in token.use() }
        case .catchOfAType:
            promise.catch(only: Flaw.self) { _ in token.use() }.ignoringErrors()
            return promise.tap { _ in }
        case .catchOfAValue:
            promise.catch(only: Flaw(1)) { token.use() }.ignoringErrors()
            return promise.tap { _ in }
        case .recoverOfAType: return promise.recover(only: Flaw.self) { _ in Promise.value(token.with(1)) }
        case .recoverOfAValue: return promise.recover(only: Flaw(1)) { Promise.value(token.with(1)) }
        case .thenMap: return promise.map { [$0] }.thenMap { Promise.value(token.with($0)) }.map { $0[0] }
        }
    }
}

/// Values and sources of combinators.
struct CombinatorReleaseTests {
    @Test(.inLoop) func noneIsKeptOnceTheCombinatorHasSettled() throws {
        let tally = Tally()
        let race = Promises.race(Promise.value(tally.token()), Promise.value(tally.token()))
        expectEqual(tally.alive, 1, "the winner's value")
        let (late, resolver) = Promise<Tally.Token>.pending()
        late.ignoringErrors()
        let other = { Promises.race(late, Promise.value(tally.token())) }()
        resolver.fulfill(tally.token())
        try EventLoop.current.run()
        expectEqual(tally.alive, 3, "another winner's, and that of the loser, which is held here")
        let failed = when(fulfilled: [Promise.value(tally.token()), Promise(error: Flaw())])
        expectEqual(failed.flaw, Flaw())
        expectEqual(tally.alive, 3)
        withExtendedLifetime((race, other, failed, late)) {}
    }
}
