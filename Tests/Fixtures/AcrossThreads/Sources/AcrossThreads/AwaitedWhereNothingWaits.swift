import Promises

/// Only an async function can wait; elsewhere there is `settledValue`.
func awaitedWhereNothingWaits(_ promise: Promise<Int>, _ guarantee: Guarantee<Int>) throws {
    _ = try promise.value  // error: 'async' property access in a function that does not support concurrency
    _ = guarantee.value  // error: 'async' property access in a function that does not support concurrency
    _ = promise.settledValue
}
