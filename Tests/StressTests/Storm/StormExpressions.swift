@testable import PromisesTestSupport

/// A random expression over promises.
struct StormExpression: CustomStringConvertible {
    let description: String
    /// The ends that it may have; threads and timers choose one.
    let possible: Set<Outcome>
    /// Makes it of the library's operators, on the thread of its site.
    let build: () -> Promise<Int>
}

/// Makes the random expressions of one seed, for the loop of this thread.
struct StormExpressions {
    private let site: StormSite
    private var storm: OperatorStorm { site.storm }
    private let shared: [StormExchange.Entry]
    private var dice: SplitMix64

    init(_ site: StormSite) {
        self.site = site
        shared = site.storm.exchange.entries
        dice = SplitMix64(site.seed)
    }

    mutating func expression(depth: Int = 4) -> StormExpression {
        if depth == 0 || dice.once(in: 8) { return leaf() }
        return dice.below(10) < 7 ? unary(expression(depth: depth - 1), depth) : gather(depth)
    }

    /// Some of the inner promises are checked too. A race, a limit or a cancellation above may cancel them.
    private func checked(
        _ text: String, _ possible: Set<Outcome>, _ build: @escaping () -> Promise<Int>
    ) -> StormExpression {
        StormExpression(description: text, possible: possible) { [site] in
            let promise = build()
            let witness = site.witness()
            guard (site.seed ^ UInt64(site.storm.witnesses.value)) % 4 == 0 else { return promise }
            promise.tap { result in
                witness.call()
                site.check(result, in: possible.union([.error(.cancelled)]), "a part: \(text)")
            }.ignoringErrors()
            return promise
        }
    }

    private mutating func outcome() -> Outcome {
        dice.once(in: 4) ? .error(.flaw(dice.below(8))) : .value(dice.below(16))
    }

    private mutating func place() -> StormPlace { dice.pick([.now, .here, .loop(0), .loop(1), .pool, .task]) }

    // MARK: Leaves

    private mutating func leaf() -> StormExpression {
        let (outcome, place, storm) = (outcome(), place(), storm)
        switch dice.below(17) {
        case 0..<6:
            return checked("\(outcome) by \(place)", [outcome]) {
                let (promise, resolver) = Promise<Int>.pending()
                storm.perform(on: place) {
                    switch Result(catching: outcome.get) {
                    case .success(let value): resolver.fulfill(value)
                    case .failure(let error): resolver.reject(error)
                    }
                    // Later ones do not count.
                    resolver.fulfill(0)
                }
                return promise
            }
        case 6:
            return checked("abandoned by \(place)", [.error(.abandoned)]) {
                let (promise, resolver) = Promise<Int>.pending()
                storm.perform(on: place) { withExtendedLifetime(resolver) {} }
                return promise
            }
        case 7:
            return checked("a timer", [.value(3)]) { after(.microseconds(20)).map { 3 }.asPromise() }
        case 8: return checked("an async body with \(outcome)", [outcome]) { Promise { try outcome.get() } }
        case 9...11:
            let target = dice.pick([.loop(0), .loop(1), .pool]) as StormPlace
            return checked("\(outcome) from \(target)", [outcome]) { [site] in
                let witness = site.witness(target)
                return Promise(on: storm.dispatcher(target)!) { () throws -> Int in
                    witness.call()
                    return try outcome.get()
                }
            }
        case 12: return checked("endless, with a limit", [.error(.timedOut)]) { endless().timeout(.microseconds(50)) }
        case 13...15:
            let form = dice.pick(StormForm.allCases)
            let second = dice.once(in: 3) ? self.place() : nil
            return checked("\(form), cancelled by \(place) and \(second as Any)", [.error(.cancelled)]) {
                let promise = form.build(storm)
                storm.perform(on: place) { promise.cancel() }
                if let second { storm.perform(on: second) { promise.cancel() } }
                return promise
            }
        default:
            let (other, isDirect) = (dice.pick(shared), dice.once(in: 2))
            return checked("one of \(other.possible)", other.possible) {
                isDirect ? other.promise.map { $0 } : Promise.value(0).then { _ in other.promise }
            }
        }
    }

    // MARK: Operators

    private mutating func unary(_ source: StormExpression, _ depth: Int) -> StormExpression {
        let (place, number, site, storm) = (place(), dice.below(8), site, storm)
        let target = dice.pick([nil, .loop(0), .loop(1), .pool]) as StormPlace?
        let dispatcher = storm.dispatcher(target)

        /// The source with an operator, whose handler has the witness.
        func with(
            _ name: String, _ possible: Set<Outcome>, at place: StormPlace? = .here,
            _ apply: @escaping (Promise<Int>, StormWitness) -> Promise<Int>
        ) -> StormExpression {
            checked("\(source).\(name)", possible) { apply(source.build(), site.witness(place)) }
        }

        let sums = source.possible.mapValues { .value(($0 + number) & 15) }
        switch dice.below(25) {
        case 0, 1:
            return with("map(\(number))", sums) { promise, witness in
                promise.map { value in
                    witness.call()
                    return (value + number) & 15
                }
            }
        case 2, 3:
            let possible = source.possible.mapValues { $0 & 1 == 1 ? .error(.flaw(number)) : .value($0) }
            return with("map(throwing \(number))", possible) { promise, witness in
                promise.map { value in
                    witness.call()
                    if value & 1 == 1 { throw Flaw(number) }
                    return value
                }
            }
        case 4, 5:
            let policy: CatchPolicy = dice.once(in: 2) ? .allErrors : .allErrorsExceptCancellation
            // Under `.allErrors` also a cancellation from below.
            let possible = source.possible.recovered(as: number) { policy == .allErrors || $0 != .error(.cancelled) }
                .union(policy == .allErrors ? [.value(number)] : [])
            return with("recover(\(policy), \(number))", possible) { promise, witness in
                promise.recover(policy: policy) { _ -> Promise<Int> in
                    witness.call()
                    return .value(number)
                }
            }
        case 6: return with("tap", source.possible) { promise, witness in promise.tap { _ in witness.call() } }
        case 7:
            return with("ensureThen", source.possible) { promise, witness in
                promise.ensureThen {
                    witness.call()
                    return after(.microseconds(20))
                }
            }
        case 8:
            return with("finally", source.possible) { promise, witness in
                promise.catch { _ in }.finally { witness.call() }
                return promise
            }
        case 9:
            return with("pipe", source.possible, at: nil) { source, witness in
                let (promise, resolver) = Promise<Int>.pending()
                source.pipe {
                    witness.call()
                    resolver.resolve($0)
                }
                return promise
            }
        case 10: return with("delay", source.possible) { promise, _ in promise.delay(.microseconds(30)) }
        case 11:
            return with("timeout", source.possible.union([.error(.timedOut)])) { promise, _ in
                promise.timeout(.microseconds(40))
            }
        case 12, 13:
            return with("cancel by \(place)", source.possible.union([.error(.cancelled)])) { promise, _ in
                storm.perform(on: place) { promise.cancel() }
                return promise
            }
        case 14, 15:
            return with("map(on: \(target as Any), \(number))", sums, at: target) { promise, witness in
                promise.map(on: dispatcher) { value -> Int in
                    witness.call()
                    return (value + number) & 15
                }
            }
        case 16:
            return with("then(on: \(target as Any), \(number))", sums, at: target) { promise, witness in
                promise.then(on: dispatcher) { value -> Promise<Int> in
                    witness.call()
                    let (promise, resolver) = Promise<Int>.pending()
                    storm.perform(on: .pool) { resolver.fulfill((value + number) & 15) }
                    return promise
                }
            }
        case 17:
            let possible = source.possible.recovered(as: number) { $0 != .error(.cancelled) }
            return with("recover(on: \(target as Any), \(number))", possible, at: target) { promise, witness in
                promise.recover(on: dispatcher) { _ -> Promise<Int> in
                    witness.call()
                    return .value(number)
                }
            }
        case 18, 19:
            return with("tap(on: \(target as Any))", source.possible, at: target) { promise, witness in
                promise.tap(on: dispatcher) { _ in witness.call() }
            }
        case 20, 21:
            let inner = expression(depth: max(depth - 2, 0))
            return with("then { \(inner) }", source.possible.followed(by: inner.possible)) { promise, witness in
                promise.then { value in
                    witness.call()
                    return inner.build().map { (value + $0) & 15 }
                }
            }
        case 22:
            return checked("retry { \(source) }", source.possible) {
                let witness = site.witness(mayRepeat: true)
                return retry(maxAttempts: 2) { _ in
                    witness.call()
                    return source.build()
                }
            }
        case 23:
            return with("value", source.possible) { promise, _ in Promise { try await promise.value } }
        default:
            let outcome = outcome()
            let possible = source.possible.followed(by: [outcome])
            return with("map { hang(\(outcome) by \(place)) }", possible) { promise, witness in
                promise.map { value in
                    witness.call()
                    let (inner, resolver) = Promise<Int>.pending()
                    storm.perform(on: place) { resolver.resolve(Result(catching: outcome.get)) }
                    return (value + (try hang(inner))) & 15
                }
            }
        }
    }

    // MARK: Several

    private mutating func gather(_ depth: Int) -> StormExpression {
        let sources = (0..<1 + dice.below(3)).map { _ in expression(depth: depth - 1) }
        let all = sources.map(\.possible)
        let site = site
        func of(
            _ name: String, _ possible: Set<Outcome>, _ combine: @escaping ([Promise<Int>]) -> Promise<Int>
        ) -> StormExpression {
            checked("\(name)\(sources)", possible) { combine(sources.map { $0.build() }) }
        }
        func sum(_ values: [Int]) -> Int { values.reduce(0, +) & 15 }

        let any = all.reduce(Set<Outcome>()) { $0.union($1) }
        let zero: Set<Outcome> = [.value(0)]
        let sums = all.reduce(zero) { $0.sums(with: $1) }.union(any.errors)
        switch dice.below(7) {
        case 0: return of("when", sums) { when(fulfilled: $0).map(sum) }
        case 1:
            let possible = all.reduce(zero) { $0.sums(with: $1.recovered(as: 0) { _ in true }) }
            return of("when(resolved:)", possible) { promises in
                when(resolved: promises).map { sum($0.map { (try? $0.get()) ?? 0 }) }.asPromise()
            }
        case 2:
            return checked("when(concurrently:)\(sources)", sums) {
                when(fulfilled: sources, concurrently: 2) { $0.build() }.map(sum)
            }
        case 3:
            let end = all.contains { $0 == $0.errors } ? [] : zero
            return checked("forEach\(sources)", any.errors.union(end)) {
                let witness = site.witness(mayRepeat: true)
                return Promises.forEach(sources) { source -> Promise<Int> in
                    witness.call()
                    return source.build()
                }.map { 0 }
            }
        case 4: return of("race", any) { Promises.race($0) }
        case 5: return of("race with an endless one", any) { Promises.race($0 + [endless()]) }
        default:
            let mayFail = all.allSatisfy { !$0.errors.isEmpty }
            let failures: Set<Outcome> = mayFail ? [.error(.noWinner), .error(.cancelled)] : []
            return of("race(fulfilled:)", any.subtracting(any.errors).union(failures)) { race(fulfilled: $0) }
        }
    }
}

extension Set<Outcome> {
    var errors: Set { filter { !$0.isValue } }

    func mapValues(_ body: (Int) -> Outcome) -> Set {
        Set(map { if case .value(let value) = $0 { body(value) } else { $0 } })
    }

    /// The errors that `isHandled` selects are replaced by a value.
    func recovered(as value: Int, where isHandled: (Outcome) -> Bool) -> Set {
        Set(map { $0.isValue || !isHandled($0) ? $0 : .value(value) })
    }

    /// The sums of a value of this set and one of the other, modulo 16.
    func sums(with other: Set) -> Set {
        func values(_ set: Set) -> [Int] { set.compactMap { try? $0.isValue ? $0.get() : nil } }
        return Set(values(self).flatMap { one in values(other).map { .value((one + $0) & 15) } })
    }

    /// For each value the results of `inner`: its errors, and the sums with its values.
    func followed(by inner: Set) -> Set {
        errors == self ? self : errors.union(inner.errors).union(sums(with: inner))
    }
}
