import Promises

/// What needs a loop for its timer.
func timeInAsync(_ promise: Promise<Int>, _ guarantee: Guarantee<Int>) async throws {
    _ = promise.delay(.seconds(1))  // error: instance method 'delay' is unavailable from asynchronous contexts
    _ = guarantee.delay(.seconds(1))  // error: instance method 'delay' is unavailable from asynchronous contexts
    _ = promise.timeout(.seconds(1))  // error: instance method 'timeout' is unavailable from asynchronous contexts
    _ = retry(maxAttempts: 2) { _ in promise }  // error: global function 'retry' is unavailable
    withVirtualTime {}  // error: global function 'withVirtualTime' is unavailable from asynchronous contexts
}
