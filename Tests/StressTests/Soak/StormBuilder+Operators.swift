@testable import PromisesTestSupport

extension StormBuilder {
    func build(_ unary: StormPlan.Unary, _ source: Promise<Int>) -> Promise<Int> {
        switch unary {
        case .map, .throwing, .compactMap, .asVoid, .values, .hung: ofValues(unary, source)
        case .get, .tap, .tapError, .ensure, .ensureThen, .finally, .done, .catchAll, .pipe: watching(unary, source)
        case .recover, .recoverAll, .recoverAlways, .recoverType, .recoverValue: ofErrors(unary, source)
        case .mapOn, .thenOn, .recoverOn, .tapOn, .catchOn: elsewhere(unary, source)
        default: others(unary, source)
        }
    }

    private func ofValues(_ unary: StormPlan.Unary, _ source: Promise<Int>) -> Promise<Int> {
        let witness = witness()
        switch unary {
        case .map(let number):
            return source.map { value in
                witness.call()
                return (value + number) & 15
            }
        case .throwing(let number):
            return source.map { value in
                witness.call()
                if value & 1 == 1 { throw StormFlaw(number: number) }
                return value
            }
        case .compactMap(let number):
            return source.compactMap { value -> Int? in
                witness.call()
                return value == number ? nil : value
            }
        case .asVoid(let number):
            var last = 0
            return source.get { last = $0 }.asVoid().map {
                witness.call()
                return (last + number) & 15
            }
        case .values(let number):
            return source.map { [number, $0] }.map { $0.sorted() }.compactMap { $0.last }.map { value in
                witness.call()
                return value
            }
        case .hung(let leaf):
            return source.map { value in
                witness.call()
                return (value + (try hang(build(leaf)))) & 15
            }
        default: fatalError("\(unary)")
        }
    }

    private func watching(_ unary: StormPlan.Unary, _ source: Promise<Int>) -> Promise<Int> {
        let witness = witness()
        switch unary {
        case .get: return source.get { _ in witness.call() }
        case .tap: return source.tap { _ in witness.call() }
        case .tapError: return source.tapError { _ in witness.call() }
        case .ensure: return source.ensure { witness.call() }
        case .ensureThen:
            return source.ensureThen {
                witness.call()
                return after(.microseconds(20))
            }
        case .finally:
            let second = self.witness()
            source.catch { _ in witness.call() }.finally { second.call() }
            return source
        case .done:
            source.done { _ in witness.call() }.ignoringErrors()
            return source
        case .catchAll:
            source.catch(policy: .allErrors) { _ in witness.call() }
            return source
        case .pipe:
            let (promise, resolver) = Promise<Int>.pending()
            source.pipe { resolver.resolve($0) }
            return promise
        default: fatalError("\(unary)")
        }
    }

    private func ofErrors(_ unary: StormPlan.Unary, _ source: Promise<Int>) -> Promise<Int> {
        let witness = witness()
        switch unary {
        case .recover(let number):
            return source.recover { _ -> Promise<Int> in
                witness.call()
                return .value(number)
            }
        case .recoverAll(let number):
            return source.recover(policy: .allErrors) { _ -> Promise<Int> in
                witness.call()
                return .value(number)
            }
        case .recoverAlways(let number):
            let always: Guarantee<Int> = source.recover { _ -> Guarantee<Int> in
                witness.call()
                return .value(number)
            }
            return always.map { $0 }.asPromise()
        case .recoverType(let number):
            return source.recover(only: StormFlaw.self) { _ -> Promise<Int> in
                witness.call()
                return .value(number)
            }
        case .recoverValue(let number):
            return source.recover(only: StormFlaw(number: number)) { () -> Promise<Int> in
                witness.call()
                return .value(number)
            }
        default: fatalError("\(unary)")
        }
    }

    private func elsewhere(_ unary: StormPlan.Unary, _ source: Promise<Int>) -> Promise<Int> {
        switch unary {
        case .mapOn(let place, let number):
            let witness = witness(place)
            return source.map(on: storm.dispatcher(place)) { value -> Int in
                witness.call()
                return (value + number) & 15
            }
        case .thenOn(let place, let number):
            let witness = witness(place)
            let storm = storm
            return source.then(on: storm.dispatcher(place)) { value -> Promise<Int> in
                witness.call()
                let (promise, resolver) = Promise<Int>.pending()
                storm.perform(on: .thread) { resolver.fulfill((value + number) & 15) }
                return promise
            }
        case .recoverOn(let place, let number):
            let witness = witness(place)
            return source.recover(on: storm.dispatcher(place)) { _ -> Promise<Int> in
                witness.call()
                return .value(number)
            }
        case .tapOn(let place):
            let witness = witness(place)
            return source.tap(on: storm.dispatcher(place)) { _ in witness.call() }
        case .catchOn(let place):
            let witness = witness(place)
            source.catch(on: storm.dispatcher(place), policy: .allErrors) { _ in witness.call() }
            return source
        default: fatalError("\(unary)")
        }
    }

    private func others(_ unary: StormPlan.Unary, _ source: Promise<Int>) -> Promise<Int> {
        let many = witness(mayRepeat: true)
        switch unary {
        case .named: return source.named("storm")
        case .delay: return source.delay(.microseconds(30))
        case .longTimeout: return source.timeout(.seconds(1000))
        case .shortTimeout: return source.timeout(.microseconds(40))
        case .cancelled(let place):
            storm.perform(on: place) { source.cancel() }
            return source
        case .then(let inner):
            return source.then { value in
                many.call()
                return build(inner).map { (value + $0) & 15 }
            }
        case .thenMap(let inner):
            return source.map { [0, $0] }.thenMap { value -> Promise<Int> in
                many.call()
                return build(inner).map { value + $0 }
            }.map { $0.reduce(0, +) & 15 }
        case .thenReduce(let inner):
            return source.map { [0, $0] }.thenReduce(0) { (sum: Int, value: Int) -> Promise<Int> in
                many.call()
                return build(inner).map { (sum + value + $0) & 15 }
            }
        case .forEach(let inner):
            var last = 0
            return source.get { last = $0 }.then { _ in
                forEach(0..<2) { _ -> Promise<Int> in
                    many.call()
                    return build(inner)
                }
            }.map { last }
        case .awaited: return Promise { try await source.value }
        default: fatalError("\(unary)")
        }
    }
}
