@testable import PromisesTestSupport

/// Builds an expression of the operator storm from the library's operators, on the loop of one thread.
struct StormBuilder {
    let storm: OperatorStorm
    let home: LoopRemote
    let seed: UInt64
    let shared: [StormExchange.Entry]
    let sets: [OutcomeSet]

    init(_ storm: OperatorStorm, _ seed: UInt64) {
        self.storm = storm
        self.seed = seed
        home = EventLoop.current.remote
        shared = storm.exchange.entries
        sets = shared.map(\.possible)
    }

    /// A handler's witness: it counts the handler's calls, on this thread unless told otherwise, and its end.
    func witness(_ place: StormPlan.Place? = .here, mayRepeat: Bool = false) -> StormWitness {
        let isHome = place == .here
        return StormWitness(storm, seed, place, isHome ? home : nil, mayRepeat)
    }

    func build(_ plan: StormPlan) -> Promise<Int> {
        let promise: Promise<Int>
        switch plan {
        case .leaf(let leaf): promise = build(leaf)
        case .unary(.retry, let source):
            let witness = witness(mayRepeat: true)
            promise = retry(maxAttempts: 2) { _ in
                witness.call()
                return build(source)
            }
        case .unary(let unary, let source): promise = build(unary, build(source))
        case .gather(let gather, let sources): promise = build(gather, sources)
        }
        // Some of the inner promises are checked too. A race, a limit or a cancellation above may cancel them.
        if (seed ^ UInt64(storm.counts.promises.add())) % 4 == 0 { probe(promise, plan) }
        return promise
    }

    private func probe(_ promise: Promise<Int>, _ plan: StormPlan) {
        let witness = witness()
        let (possible, storm, seed) = (plan.possible(sets) | .cancelled, storm, seed)
        promise.tap { result in
            witness.call()
            storm.check(StormOutcome(result), in: possible, seed, "a part: \(plan)")
        }.ignoringErrors()
    }

    // MARK: Leaves

    func build(_ leaf: StormPlan.Leaf) -> Promise<Int> {
        switch leaf {
        case .settled(let outcome):
            return outcome.isFlaw ? Promise(error: outcome.error) : .value(outcome.number)
        case .guaranteed(let value): return Guarantee.value(value).asPromise()
        case .resolved(let outcome, let place):
            let (promise, resolver) = Promise<Int>.pending()
            let witness = StormWitness(storm, seed, nil, nil, false)
            storm.perform(on: place) {
                witness.call()
                resolver.settle(outcome)
                // Later ones do not count.
                resolver.fulfill(0)
            }
            return promise
        case .abandoned(let place):
            let (promise, resolver) = Promise<Int>.pending()
            storm.perform(on: place) { withExtendedLifetime(resolver) {} }
            return promise
        case .timer(let value):
            let witness = witness()
            return after(.microseconds(value * 7)).map { () -> Int in
                witness.call()
                return value
            }.asPromise()
        case .asyncBody(let outcome): return Promise { try outcome.get() }
        case .dispatched(let outcome, let place):
            let witness = witness(place)
            return Promise(on: storm.dispatcher(place)!) { () throws -> Int in
                witness.call()
                return try outcome.get()
            }
        case .thenable(let outcome): return Promise.value(0).then { _ in StormThenable(outcome) }
        case .endless: return endless().timeout(.microseconds(50))
        case .onlyCancelled(let form, let place, let second):
            let promise = build(form)
            storm.perform(on: place) { promise.cancel() }
            if let second { storm.perform(on: second) { promise.cancel() } }
            return promise
        case .shared(let index):
            let other = shared[index].promise
            return index & 1 == 0 ? other.map { $0 } : Promise.value(0).then { _ in other }
        }
    }

    // MARK: Several

    private func build(_ gather: StormPlan.Gather, _ sources: [StormPlan]) -> Promise<Int> {
        let witness = witness()
        func sum(_ values: [Int]) -> Int {
            witness.call()
            return values.reduce(0, +) & 15
        }
        func sumOfResults(_ results: [Result<Int, any Error>]) -> Int { sum(results.map { (try? $0.get()) ?? 0 }) }
        func guarantee(_ plan: StormPlan) -> Guarantee<Int> { build(plan).recover { _ in Guarantee.value(0) } }
        switch gather {
        case .when: return when(fulfilled: sources.map(build)).map(sum)
        case .whenTuple:
            guard sources.count == 2 else { return when(fulfilled: sources.map(build)).map(sum) }
            return when(fulfilled: build(sources[0]), build(sources[1])).map { sum([$0, $1]) }
        case .whenMixed:
            let mixed: [any Thenable<Int>] = sources.map(build) + [Guarantee.value(0)]
            return when(fulfilled: mixed).map(sum)
        case .whenResolved: return when(resolved: sources.map(build)).map(sumOfResults).asPromise()
        case .whenConcurrently: return when(fulfilled: sources, concurrently: 2) { build($0) }.map(sum)
        case .whenGuarantees: return when(guarantees: sources.map(guarantee)).map(sum).asPromise()
        case .forEach:
            var count = 0
            return Promises.forEach(sources) { plan -> Promise<Int> in
                count += 1
                return build(plan)
            }.map {
                witness.call()
                return count
            }
        case .race: return Promises.race(sources.map(build))
        case .raceFulfilled: return Promises.race(fulfilled: sources.map(build))
        case .raceWithEndless: return Promises.race(sources.map(build) + [endless()])
        case .raceGuarantees:
            let all = sources.map(guarantee)
            let pair: Guarantee<Int> = all.count > 1 ? Promises.race(all[0], all[1]) : all[0]
            return (all.count > 2 ? Promises.race(pair, all[2]) : pair).asPromise()
        }
    }
}

extension StormOutcome {
    var error: any Error {
        if case .flaw(let number) = self { StormFlaw(number: number) } else { PromiseError.cancelled }
    }
    var number: Int { if case .value(let value) = self { value } else { -1 } }

    func get() throws -> Int {
        if case .value(let value) = self { return value }
        throw error
    }
}

extension Resolver<Int> {
    fileprivate func settle(_ outcome: StormOutcome) {
        if case .value(let value) = outcome { fulfill(value) } else { reject(outcome.error) }
    }
}

/// A thenable that is not a promise of the library.
private struct StormThenable: Catchable {
    let outcome: StormOutcome
    var result: Result<Int, any Error>? { Result { try outcome.get() } }

    init(_ outcome: StormOutcome) { self.outcome = outcome }

    func pipe(to handler: @escaping @Sendable (Result<Int, any Error>) -> Void) { handler(result!) }

    func asPromise() -> Promise<Int> { Promise { seal in pipe { seal.resolve($0) } } }
}
