@testable import PromisesTestSupport

/// The ways in which a promise of the operator storm waits for one that nothing settles: a cancellation must reach it,
/// whatever has happened by then.
enum StormForm: CaseIterable {
    case plain, settledThen, nestedThen, timedThen, linkedTwice, ensureThen, mapOnLoop, mapOnPool, thenOnLoop
    case when, whenConcurrently, race, raceFulfilled, forEach, retry, awaited, recovered

    func build(_ storm: OperatorStorm) -> Promise<Int> {
        switch self {
        case .plain: return endless()
        case .settledThen: return Promise.value(0).then { _ in endless() }
        case .nestedThen: return Promise.value(0).then { _ in Promise.value(0).then { _ in endless().map { $0 } } }
        case .timedThen: return after(.microseconds(20)).then { () -> Promise<Int> in endless().map { $0 } }
        case .linkedTwice:
            return Promise.value(0).then { _ in
                after(.microseconds(5)).then { () -> Promise<Int> in endless().map { $0 } }
            }
        case .ensureThen: return endless().ensureThen { after(.microseconds(20)) }
        case .mapOnLoop: return endless().map(on: storm.loops[0]) { $0 }
        case .mapOnPool: return endless().map(on: storm.pool) { $0 }.map { $0 }
        case .thenOnLoop: return Promise.value(0).then(on: storm.loops[1]) { _ in endless().map { $0 } }
        case .when: return Promises.when(fulfilled: [.value(1), endless()]).map { $0[0] }
        case .whenConcurrently:
            return Promises.when(fulfilled: [0, 1], concurrently: 1) { _ in endless() }.map { $0[0] }
        case .race: return Promises.race(endless(), endless().map { $0 })
        case .raceFulfilled: return Promises.race(fulfilled: [Promise(error: Flaw(1)), endless()])
        case .forEach: return Promises.forEach([0, 1]) { _ in endless() }.map { 0 }
        case .retry: return Promises.retry(maxAttempts: 2) { _ in endless() }
        case .awaited:
            let inner = endless()
            return Promise { try await inner.value }
        case .recovered: return Promise<Int>(error: Flaw(1)).recover { _ in endless() }
        }
    }
}
