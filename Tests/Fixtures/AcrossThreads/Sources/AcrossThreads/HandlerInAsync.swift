import Promises

/// Handlers, for which an async function has no loop.
func handlersInAsync(_ promise: Promise<Int>, _ guarantee: Guarantee<Int>) async throws {
    _ = promise.map { $0 + 1 }  // error: instance method 'map' is unavailable from asynchronous contexts
    _ = guarantee.then { .value($0) }  // error: instance method 'then' is unavailable from asynchronous contexts
    promise.catch { _ in }  // error: instance method 'catch' is unavailable from asynchronous contexts
    _ = when(fulfilled: [promise])  // error: global function 'when' is unavailable from asynchronous contexts
    _ = race(promise, promise)  // error: global function 'race' is unavailable from asynchronous contexts
    _ = promise.map(on: nil) { $0 + 1 }
}
