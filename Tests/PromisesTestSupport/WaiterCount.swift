@testable import Promises

/// How many nodes are in the list of waiters of a promise, withdrawn ones among them.
func waiterCount<T>(of promise: Promise<T>) -> Int {
    promise.core.state.load().waiters?.list.reduce(0) { count, _ in count + 1 } ?? 0
}
