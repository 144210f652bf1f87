import Promises

// Functions with callbacks become promises: of the same type in each language mode.

private func find(_ done: @escaping (Int?, (any Error)?) -> Void) { done(1, nil) }
private func findReversed(_ done: @escaping ((any Error)?, Int?) -> Void) { done(nil, 1) }
private func count(_ done: @escaping (Int, (any Error)?) -> Void) { done(1, nil) }

func promisesOfCallbacks() -> [Promise<Int>] {
    let found = Promise<Int> { find($0.resolve) }
    return [found, Promise { findReversed($0.resolve) }, Promise { count($0.resolve) }]
}

func aPromiseOfAnOptional() -> Promise<Int?> { Promise { find($0.resolve) } }
