@testable import PromisesTestSupport

/// The ways in which a promise of the operator storm waits for one that nothing settles: a cancellation must reach it,
/// whatever has happened by then.
enum StormForm: CaseIterable {
    case plain, map, settledThen, nestedThen, timedThen, ensureThen, delayed, mapOnLoop, mapOnPool, thenOnLoop
    case thenOnPool, when, whenConcurrently, race, raceFulfilled, forEach, retry, awaited, recovered, guaranteed,
        linkedTwice
}

extension StormBuilder {
    func build(_ form: StormForm) -> Promise<Int> {
        let loops = storm.loops
        let pool = storm.dispatcher(.pool)
        let storm = storm
        switch form {
        case .plain: return endless()
        case .map: return endless().map { $0 }.map { $0 }
        case .settledThen: return Promise.value(0).then { _ in endless() }
        case .nestedThen: return Promise.value(0).then { _ in Promise.value(0).then { _ in endless().map { $0 } } }
        case .timedThen: return after(.microseconds(20)).then { () -> Promise<Int> in endless().map { $0 } }
        case .ensureThen: return endless().ensureThen { after(.microseconds(20)) }
        case .delayed: return Promise.value(0).delay(.microseconds(20)).then { _ in endless() }
        case .mapOnLoop: return endless().map(on: loops[0]) { $0 }
        case .mapOnPool: return endless().map(on: pool) { $0 }.map { $0 }
        case .thenOnLoop: return Promise.value(0).then(on: loops[1]) { _ in endless().map { $0 } }
        case .thenOnPool: return Promise.value(0).then(on: pool) { _ in storm.pending() }
        case .when: return when(fulfilled: [.value(1), endless()]).map { $0[0] }
        case .whenConcurrently: return when(fulfilled: [0, 1], concurrently: 1) { _ in endless() }.map { $0[0] }
        case .race: return Promises.race(endless(), endless().map { $0 })
        case .raceFulfilled: return race(fulfilled: [Promise(error: StormFlaw(number: 1)), endless()])
        case .forEach: return forEach([0, 1]) { _ in endless() }.map { 0 }
        case .retry: return retry(maxAttempts: 2) { _ in endless() }
        case .awaited:
            let inner = storm.pending()
            return Promise { try await inner.value }
        case .recovered: return Promise<Int>(error: StormFlaw(number: 1)).recover { _ in endless() }
        case .guaranteed: return after(.seconds(1000)).map { 1 }.asPromise()
        case .linkedTwice:
            return Promise.value(0).then { _ in
                after(.microseconds(5)).then { () -> Promise<Int> in endless().map { $0 } }
            }
        }
    }
}
